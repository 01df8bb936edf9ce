// apps/task_report.h: the results of `eval tasks` as a table and as one JSON object.
#pragma once

#include <string>

#include "apps/task_scores.h"

namespace deepinfer {

std::string EvaluationTable(const Evaluation& evaluation);
// {"tasks":{name:{"right","total","exact","bounded",...}}, "accepted_length", "confidence_ece",
// "perplexity", ...}: accuracies 0..1, null for what was not measured.
std::string EvaluationJson(const Evaluation& evaluation);

}  // namespace deepinfer
