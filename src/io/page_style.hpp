// The look of pages that need no network: light or dark as the reader's system is. The class c0 has the first
// colour of plots, and so on.
#pragma once

#include <string_view>

#include "io/svg.hpp"

namespace ferrite::svg {

inline constexpr std::string_view page_style =
    R"(:root { color-scheme: light dark; --text: #1c1c1c; --faint: #666; --grid: #e2e2e2; --back: #fff; --card: #f5f5f5;
  --bad: #b3261e; --c0: #8b5fbf; --c1: #0b63c4; --c2: #0f8a6d; --c3: #d9570d; --c4: #b8860b; --c5: #c2185b;
  --c6: #5d7a00; --c7: #455a64; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --faint: #a3a3a3; --grid: #363636; --back: #161616;
  --card: #222; --bad: #ff8a80; --c0: #c3a1f0; --c1: #62a8ff; --c2: #4ecfae; --c3: #ff9a57; --c4: #e6c35c;
  --c5: #ff7eb0; --c6: #b5d64f; --c7: #9fb6c1; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1020px;
  margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; margin-bottom: 0; } h2 { font-size: 1.2em; margin: 2.2em 0 0; }
p { color: var(--faint); max-width: 80ch; margin: .3em 0 .8em; }
.scroll { overflow-x: auto; } .grid { display: flex; flex-wrap: wrap; gap: 18px; }
.legend span { margin-right: 1.6em; } .legend b { font-size: 1.2em; }
.cards { display: flex; flex-wrap: wrap; gap: 10px; margin: 1em 0; }
.card { background: var(--card); border-radius: 8px; padding: .6em 1em; color: var(--faint); max-width: 15em; }
.card b { display: block; font-size: 1.5em; color: var(--text); }
svg { font: 11px system-ui, sans-serif; } svg text { fill: var(--text); } svg text.faint { fill: var(--faint); }
svg text.head { font-weight: 600; } svg line.grid { stroke: var(--grid); }
svg line.mark { stroke: currentColor; stroke-dasharray: 5 3; } svg g.mark text { fill: currentColor; }
svg circle, svg rect { fill: currentColor; } svg polyline { fill: none; stroke: currentColor; stroke-width: 1.5; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
svg text.c0, svg text.c1, svg text.c2, svg text.c3, svg text.c4, svg text.c5, svg text.c6, svg text.c7 {
  fill: currentColor; }
details { margin: .6em 0; } summary { cursor: pointer; color: var(--faint); }
table { border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; }
td, th { padding: 2px 9px; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; position: sticky; left: 0; background: var(--back); }
.faint { color: var(--faint); } .bad { color: var(--bad); font-weight: 600; }
ul { color: var(--faint); }
)";

/// A whole page. `body` and `more_head` are HTML; the rest is text.
inline std::string page(const std::string& title, const std::string& facts, const std::string& body,
                        const std::string& more_head = "") {
  return fmt::format(R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{4}<title>{0}</title>
<style>
{1}</style>
</head>
<body>
<h1>{0}</h1>
<p>{2}</p>
{3}</body>
</html>
)",
                     escaped(title), page_style, escaped(facts), body, more_head);
}

}  // namespace ferrite::svg
