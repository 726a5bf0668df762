# SPDX-License-Identifier: BSD-3-Clause
"""Result lines of script tests: `ok NAME`, `not ok NAME reason`, `N passed, M failed`."""
import sys


class Lines:
    def __init__(self):
        self.passed = self.failed = 0

    def run(self, name, test):
        try:
            test()
        except Exception as error:  # a test that fails for any cause is a failed test
            self.failed += 1
            text = " ".join(("%s: %s" % (type(error).__name__, error)).split())[:900]
            print("not ok %s %s" % (name, text), flush=True)
        else:
            self.passed += 1
            print("ok %s" % name, flush=True)

    def end(self):
        print("%d passed, %d failed" % (self.passed, self.failed))
        sys.exit(1 if self.failed else 0)
