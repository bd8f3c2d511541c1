// ferrite pfn: prior-fitted networks, which predict tables they have never seen.
#include "cli/pfn/pfn.hpp"

namespace ferrite::cli {

void add_pfn(CLI::App& app, Action& action) {
  CLI::App* pfn = app.add_subcommand(
      "pfn", "Tabular foundation models: predict and evaluate tables, train on synthetic ones");
  pfn->require_subcommand(1);
  pfn->footer(
      "Examples:\n"
      "  ferrite pfn eval data.csv --target y --page report.html\n"
      "  ferrite pfn predict --train a.csv --test b.csv --target y --out p.csv\n"
      "  ferrite pfn train --steps 20000 --out run\n"
      "  ferrite pfn export run/step-00020000.safetensors --out w.safetensors");
  add_pfn_predict(*pfn, action);
  add_pfn_train(*pfn, action);
  add_pfn_eval(*pfn, action);
  add_pfn_export(*pfn, action);
}

}  // namespace ferrite::cli
