"""A payment service: target of the demonstration, the tests and the crash harness, and witness.

Standard library only. Start it with ``python -m examples.sandbox --port 0 --data DIR``; read its
raw request log with ``examples.sandbox.log``, also after it was killed.
"""
