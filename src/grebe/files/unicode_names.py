"""Names that are no Unicode text.

A name on a disk of Linux is bytes. Python stands for bytes that are no UTF-8 with lone surrogates, which no log, no message and no
array of text can hold.
"""


def is_unicode(text: str) -> bool:
    """Tell whether a text can be written as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escaped(text: str) -> str:
    r"""Return a text that can be written: bytes of a name that are no UTF-8 become `\xff`, other lone surrogates `\ud800`."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
