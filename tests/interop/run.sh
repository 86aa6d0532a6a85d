#!/bin/sh
# Runs one file of tests with the Python that has the references (tools/setup.sh test). Without it: skipped, as CTest reads exit code 77.
python=$GENAI_TEST_VENV/bin/python
if ! [ -x "$python" ]; then
  echo "skipped: no Python environment at \"$GENAI_TEST_VENV\"; make setup-test creates it"
  exit 77
fi
cd "$(dirname "$0")" && exec "$python" -m pytest -q -p no:cacheprovider -W ignore::DeprecationWarning "$1"
