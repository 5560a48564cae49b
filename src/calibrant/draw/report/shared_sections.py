"""Sections shared by the reports of several results."""

from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.draw.report.inputs import MostShown
from calibrant.draw.report.page import Section
from calibrant.draw.report.subgroup_rows import forest
from calibrant.draw.report.table_file import ShownTable, shown_table, table_file
from calibrant.text.result import Result


def shown_tables(found: Result, sizes: MostShown) -> list[ShownTable]:
    """The nonempty tables of a result, each with its CSV."""
    return [
        shown_table(table, table.name, sizes.table_rows, sizes.file_rows)
        for table in found.tables()
        if len(table)
    ]


def subgroups_section(found: SubgroupAudit, sizes: MostShown) -> Section:
    """Subgroups as a forest plot."""
    every = next(table for table in found.tables() if table.name == "subgroups")
    file = table_file(every, sizes.file_rows)
    return Section(
        "subgroups-title",
        "Subgroups",
        "subgroups",
        {"forest": forest(found), "file": file},
    )
