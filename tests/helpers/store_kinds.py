"""Find the description of a store by its kind."""

from __future__ import annotations

from hermes_doctor.hermes.stores.catalogue import Store, stores


def store(kind: str) -> Store:
    """The store of this kind."""
    return next(one for one in stores() if one.kind == kind)
