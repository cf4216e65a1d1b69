"""Jobs that users describe in YAML files, which are read and checked completely before anything starts."""

from skypane.jobs.job_file import JobFile
from skypane.jobs.reading import parse, read

__all__ = ["JobFile", "parse", "read"]
