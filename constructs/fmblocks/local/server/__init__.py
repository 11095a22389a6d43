"""The server side: ministack and our extension of it. Nothing here is imported by the rest of fmblocks."""
