"""Styled lines, the console and progress bars.

`render` and `cli` use it to print; it knows neither reports nor plans.
"""
