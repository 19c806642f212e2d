"""The container image: built on a stand-in for Python's, run, and a message sent through it.

Not part of `make test`: `make image` does it, as root, with buildah and mmdebstrap.
"""
