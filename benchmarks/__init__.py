"""Measurements, each beside the yardstick of the same run. Not part of the product."""
