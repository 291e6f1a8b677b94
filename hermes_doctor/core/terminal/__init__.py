"""Print styled lines and progress bars.

`render` and `cli` use it to print; it knows nothing about reports and plans.
"""
