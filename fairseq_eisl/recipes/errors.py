"""The one error of recipes."""


class RecipeError(Exception):
    """One line for the user: a wrong recipe, or a stage that failed."""
