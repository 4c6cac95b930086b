"""The program that tries a remedy on a target without making it: the failing check, a build, a launch, a request.

It runs there with nothing but the standard library of Python 3.6 or later, as the collector does. It writes only below
a private temporary folder, which is removed.
"""
