"""Large databases in seconds: a run that services made, multiplied by COPY with ids, times and hashes of its own for every copy.

A copy is no second way of making runs. Its rows and entries are those of the golden run, with other ids, another word, shifted times and fresh
salts; every digest is computed again by the product's own functions, and `verify` passes on each. Golden runs prove that first: derived anew from
its own ids and salts, every digest must come out as services wrote it.
"""

from benchmarks.loader.copies import Copies, load, reckon
from benchmarks.loader.golden import WORD, Golden, golden

__all__ = ["WORD", "Copies", "Golden", "golden", "load", "reckon"]
