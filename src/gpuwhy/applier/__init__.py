"""The program that changes a target: performs one previewed plan, journals every step before it is done, and takes it back.

It runs on the target with nothing but the standard library of Python 3.6 or later, as the collector does.
"""
