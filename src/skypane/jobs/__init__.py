"""A user's own job, described in a YAML file: read and checked in full before anything starts."""

from skypane.jobs.model import Job
from skypane.jobs.reading import parse, read

__all__ = ["Job", "parse", "read"]
