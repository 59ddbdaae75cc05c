"""Parses fields by http-sfv and compares them with what they must say.

Each line of the standard input is a JSON array: the kind of the structured field, its value, and
what is expected. A list is expected as [[item, parameters], ...], a dictionary as its values, and an
item as its value. The last line of the output says how many fields were the same.
"""

import base64
import json
import sys

import http_sfv


def plain(value):
    """A value as JSON has it. Tokens and byte sequences are marked."""
    if isinstance(value, bytes):
        return "bytes " + base64.b64encode(value).decode()
    if isinstance(value, http_sfv.Token):
        return "token " + str(value)
    return value


def read(kind, text):
    field = http_sfv.structures[kind]()
    field.parse(text.encode())
    if kind == "list":
        return [
            [plain(item.value), {key: plain(value) for key, value in item.params.items()}]
            for item in field
        ]
    if kind == "dictionary":
        return {key: plain(item.value) for key, item in field.items()}
    return plain(field.value)


def main():
    same = different = 0
    for line in sys.stdin:
        kind, text, expected = json.loads(line)
        try:
            found = read(kind, text)
        except ValueError as error:
            found = f"{error}"
        if found == expected:
            same += 1
        else:
            different += 1
            print(f"{kind} {text}\n  read as {found}\n  expected {expected}")
    print(f"{same} same, {different} different")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
