"""Names of other packages, for test suites that were written for them: change the import, keep the tests."""
