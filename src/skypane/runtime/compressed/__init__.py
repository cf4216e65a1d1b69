"""Compressed files (gzip, Zstandard, bzip2, xz) as growing texts of lines.

formats.py          the formats: names, endings of file names, first bytes, decoders
unpacking.py        from a file's bytes to its text, member by member, past damaged ones
text_window.py      the latest text of a file that is read forward, kept from one call to the next
compressed_file.py  the lines of a compressed file, as growing_files.py has those of a plain one
"""
