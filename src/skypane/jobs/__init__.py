"""A user's own job, described in a YAML file: read and checked in full before anything starts."""

from skypane.jobs.model import JobFile
from skypane.jobs.reading import parse, read

__all__ = ["JobFile", "parse", "read"]
