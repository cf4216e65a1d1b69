"""Folders of object stores whose objects arrive over time, read without a list of all that was read.

folder_listing.py  the objects of a folder as the store lists them
read_objects.py    what was read, in a few kilobytes: which objects are new, and which were written again
object_bytes.py    the bytes of one version of an object, in ranges
object_text.py     its lines: growing_files.py and compressed/ have those of files on disk
"""
