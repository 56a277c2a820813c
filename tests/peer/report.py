"""Checks a study's report in a headless browser: report.py STUDY PICTURES [AUDIT]

- no script error, nothing asked of the network, no horizontal scroll at the widths of a desktop and a phone;
- every column of every sortable table sorts, both ways, by its numbers; rows without a value come last;
- on a desktop no plot is cut, and the table of architectures shows its most important columns;
- the table of architectures filters; points of plots show their values;
- text has enough contrast in light and in dark;
- text from files is shown as it is and is nowhere part of the page's structure.

AUDIT is the page of `kappascope audit`, which is checked in the same way as far as it has these parts.
"""
import os
import sys
import urllib.parse

from browser import Browser

VIEWS = [("desktop", 1280, 900), ("phone", 390, 844)]
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)
        print(f"FAILED: {message}")


# --- tables ---

ROWS = """(id => Array.from(document.getElementById(id).tBodies[0].rows)
    .filter(row => !row.hidden).map(row => Array.from(row.cells,
        cell => ({text: cell.textContent, value: cell.dataset.value, none: cell.classList.contains('none')}))))"""


def rows(page, table):
    return page.evaluate(f"{ROWS}('{table}')")


def number(text):
    return float(text.replace("Infinity", "inf"))


def check_sorted(cells, what, descending):
    given = [cell for cell in cells if not cell["none"]]
    check(cells[:len(given)] == given, f"{what}: cells without a value are not last")
    numbers = all("value" in cell for cell in given)
    keys = [number(cell["value"]) if numbers else cell["text"] for cell in given]
    check(keys == sorted(keys, reverse=descending), f"{what}: not sorted: {keys}")


def check_sorting(page):
    # One value is missing, as if its analysis had failed.
    page.evaluate("(cell => { delete cell.dataset.value; cell.classList.add('none'); })"
                  "(document.querySelector('#table-architectures tbody').rows[4].cells[1])")
    tables = page.evaluate("Array.from(document.querySelectorAll('table.sortable'), table => table.id)")
    check("table-architectures" in tables, "there is no table of architectures")
    for table in tables:
        before = rows(page, table)
        check(len(before) > 1, f"{table}: fewer than two rows")
        for column in range(len(before[0])):
            button = f"document.querySelector('#{table} thead tr').cells[{column}].querySelector('button')"
            for descending in [False, True]:
                page.click(button)
                after = rows(page, table)
                check(sorted(map(str, after)) == sorted(map(str, before)), f"{table}: sorting loses or changes rows")
                check_sorted([row[column] for row in after], f"{table}, column {column}", descending)
            word = page.evaluate(f"{button}.parentNode.getAttribute('aria-sort')")
            check(word == "descending", f"{table}, column {column}: aria-sort is {word}")


def check_filters(page):
    form, table = "document.querySelector('form.filters')", "table-architectures"
    everything = len(rows(page, table))
    page.click(f"{form}.querySelector('input')")
    page.type("WN+")
    names = [row[0]["text"] for row in rows(page, table)]
    check(0 < len(names) < everything and all("wn+" in name for name in names), f"the filter 'WN+' leaves {names}")
    said = page.evaluate(f"{form}.querySelector('output').textContent")
    check(said == f"{len(names)} of {everything}", f"the filter says '{said}'")
    choose = "(([name, value]) => { const s = document.querySelector(`form.filters select[name=${name}]`);" \
        " s.value = value; s.dispatchEvent(new Event('input', {bubbles: true})); })"
    page.evaluate(f"{choose}(['normalization', 'ln'])")
    page.evaluate(f"{choose}(['loss', 'mse'])")
    names = [row[0]["text"] for row in rows(page, table)]
    check(names == ["ln+wn+mse"], f"filters by name, normalization and loss leave {names}")
    page.evaluate(f"{form}.reset()")
    page.evaluate(f"{choose}(['wn', ''])")
    check(len(rows(page, table)) == everything, "an empty filter hides rows")


# --- claims ---

# Of each claim: whether it is open, the heights of its line and of what it opens to.
CLAIMS = """Array.from(document.querySelectorAll('details.line'), claim => [claim.open,
    claim.querySelector('summary').getBoundingClientRect().height,
    claim.querySelector('table').checkVisibility() ? claim.querySelector('table').getBoundingClientRect().height : 0])"""


def check_claims(page, path):
    """Claims open by a click, also without scripts; on paper all of them are open."""
    for scripts in [True, False]:
        page.scripts(scripts)
        page.view(1280, 900, False)
        page.open(path)
        claims = page.evaluate(CLAIMS)
        check(len(claims) > 0, "there is no claim")
        check(all(not opened and table == 0 for opened, _, table in claims), "a claim is open from the start")
        check(all(line < 100 for _, line, _ in claims), f"a claim's line is {max(c[1] for c in claims)} pixels high")
        page.click("document.querySelector('details.line summary')")
        opened, _, table = page.evaluate(CLAIMS)[0]
        check(opened and table > 40, f"scripts {scripts}: a click shows {table} pixels of a claim's numbers")
        page.view(720, 1000, False, "print")
        check(all(table > 20 for _, _, table in page.evaluate(CLAIMS)), f"scripts {scripts}: a claim is not printed")
    page.scripts(True)


# --- plots ---

def check_values(page):
    plots = page.evaluate("Array.from(document.querySelectorAll('figure'), figure => figure.id)")
    check(len(plots) > 0, "there is no plot")
    for plot in plots:
        check(page.evaluate(f"!!document.querySelector('#{plot} svg')"), f"{plot}: no inline SVG")
    count = page.evaluate("document.querySelectorAll('.value').length")
    check(count > 0, "no plotted point has a value")
    if count == 0:
        return
    page.point("document.querySelector('.value')")
    tip = "document.getElementById('tip')"
    text = page.evaluate(f"{tip}.hidden ? '' : {tip}.textContent")
    check(any(c.isdigit() for c in text), f"the value of a point shows as '{text}'")
    box = page.evaluate(f"(r => [r.left, r.top, r.right, r.bottom])({tip}.getBoundingClientRect())")
    size = page.evaluate("[document.documentElement.clientWidth, document.documentElement.clientHeight]")
    check(0 <= box[0] and 0 <= box[1] and box[2] <= size[0] and box[3] <= size[1], f"the value lies outside: {box}")
    page.point("document.querySelector('h1')")
    check(page.evaluate(f"{tip}.hidden"), "the value stays when the mouse leaves the point")


def check_fit(page):
    """In the window of a desktop no plot scrolls, and the table of architectures shows its most important columns."""
    cut = page.evaluate("Array.from(document.querySelectorAll('.plot')).filter(e => e.scrollWidth > e.clientWidth)"
                        ".map(e => e.closest('figure').id)")
    check(not cut, f"plots are cut: {cut}")
    seen = page.evaluate("Array.from(document.querySelector('#table-architectures thead tr').cells)"
                         ".filter(e => e.getBoundingClientRect().right <= document.documentElement.clientWidth)"
                         ".map(e => e.firstChild.textContent)")
    needed = ["return", "kappa", "kappa_q99", "directions_1e2", "lambda_max"]
    check(all(name in seen for name in needed), f"of the table of architectures only {seen} are seen")


def check_ids(page):
    twice = page.evaluate("""(() => { const seen = new Set(), twice = [];
        for (const e of document.querySelectorAll('[id]')) { if (seen.has(e.id)) twice.push(e.id); seen.add(e.id); }
        return twice; })()""")
    check(not twice, f"ids occur twice: {twice[:5]}")


# --- looks ---

def luminance(colour):
    """Relative luminance of "rgb(1, 2, 3)" (WCAG 2.1)."""
    parts = [int(float(c)) / 255 for c in colour[colour.index("(") + 1:-1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def check_contrast(page, view, dark):
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    back = luminance(colour)
    check((back < 0.1) == dark, f"{view}: the background is {colour}")
    for element in ["body", "h1", "figcaption", ".note", "a", "td", ".other td", ".kind", ".yes", ".no"]:
        text = page.evaluate(f"(e => e ? getComputedStyle(e).color : '')(document.querySelector('{element}'))")
        if text:
            high, low = max(back, luminance(text)), min(back, luminance(text))
            check((high + 0.05) / (low + 0.05) >= 4.5, f"{view}: {element}: contrast of {text} on {colour}")


def check_view(page, view, dark):
    wide, have = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    check(wide <= have, f"{view}: the page is {wide} pixels wide, the window {have}")
    small = page.evaluate("Array.from(document.querySelectorAll('p, li, td, figcaption'), e => parseFloat("
                          "getComputedStyle(e).fontSize)).reduce((a, b) => Math.min(a, b))")
    check(small >= 12, f"{view}: text of {small} pixels")
    narrow = page.evaluate("Array.from(document.querySelectorAll('td')).filter(e => e.checkVisibility())"
                           ".map(e => e.clientWidth).reduce((a, b) => Math.min(a, b))")
    check(narrow >= 40, f"{view}: a table's cell is {narrow} pixels wide")
    check_contrast(page, view, dark)


# --- escaping ---

def check_structure(page):
    check(page.evaluate("window.injected === undefined"), "text from a file ran as a script")
    for element, most in [("script", 1), ("style", 1), ("img", 0), ("iframe", 0), ("link", 0)]:
        n = page.evaluate(f"document.querySelectorAll('{element}').length")
        check(n <= most, f"the page has {n} elements <{element}>")
    handlers = page.evaluate("Array.from(document.querySelectorAll('*')).filter(e => Array.from(e.attributes)"
                             ".some(a => a.name.startsWith('on'))).length")
    check(handlers == 0, f"{handlers} elements have event handlers")


def check_escaping(page, study):
    check_structure(page)
    text = open(os.path.join(study, "study.study")).read()
    check(page.evaluate("document.querySelector('pre').textContent") == text, "the study's file is shown otherwise")
    links = page.evaluate("Array.from(document.querySelectorAll('#files a'), a => a.getAttribute('href'))")
    tables = sorted(name for name in os.listdir(os.path.join(study, "tables")) if name.endswith(".csv"))
    check(sorted(urllib.parse.unquote(link) for link in links) == ["tables/" + name for name in tables],
          f"links to tables: {links}")


def check_colours(page, view, pictures, prefix=""):
    """Checks a page in a window of this size, light and dark, and takes pictures of it."""
    name, width, height = view
    for dark in [False, True]:
        name_of_view = f"{prefix}{name}-{'dark' if dark else 'light'}"
        page.view(width, height, dark)
        check_view(page, name_of_view, dark)
        page.evaluate("window.scrollTo(0, 0)")
        page.picture(os.path.join(pictures, f"{name_of_view}.png"), whole=True)


# --- the page of an audit ---

def check_audit(page, path, pictures):
    page.open(path)
    check_structure(page)
    check_ids(page)
    title = page.evaluate("document.querySelector('h2').textContent")
    check("<img" in title, f"the name of the audited file is shown as '{title}'")
    for part in ["section", ".plot svg", "table", "li"]:
        check(page.evaluate(f"!!document.querySelector('{part}')"), f"the audit has no {part}")
    for view in VIEWS:
        check_colours(page, view, pictures, "audit-")


def main():
    study, pictures, *audits = sys.argv[1:]
    page = Browser()
    try:
        page.view(1280, 900, False)
        page.open(os.path.join(study, "report.html"))
        check_escaping(page, study)
        check_fit(page)
        check_ids(page)
        for view in VIEWS:
            check_colours(page, view, pictures)
            check_sorting(page)
            check_filters(page)
            check_values(page)
        check_claims(page, os.path.join(study, "report.html"))
        for audit in audits:
            check_audit(page, audit, pictures)
        check(not page.errors, f"errors: {page.errors}")
        other = [url for url in page.requests if not url.endswith(("/report.html", "/audit.html"))]
        check(not other, f"the page asks for {other}")
    finally:
        page.close()
    print(f"report: {len(failures)} failed checks")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
