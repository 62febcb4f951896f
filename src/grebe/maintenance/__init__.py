"""The verbs that change indexes. Each is the same template (`operation`): validate, begin, work, commit, and clean up on failure.

`create` and `refresh` build content in Spark (`build`, from the `rows` of the table); `delete` and `restore` need only the log.
"""
