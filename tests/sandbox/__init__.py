"""Tests of the payment service, each against a real process."""
