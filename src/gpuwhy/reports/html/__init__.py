"""Reports as one HTML file: it asks nothing of any network, and runs no script and no style but its own.

:mod:`page` writes a page from a template; the other modules make what the templates show. Every string that is printed
passes :mod:`inert` first, whatever the template does.
"""
