// One mistake on purpose, and the golden check must turn red: golden_faults FAULT GOLDEN_DIR
// The check is layer by layer. With "whole" behind it, it is the end to end one, for folders
// without layer streams. With "record", the mistaken run is written into GOLDEN_DIR instead, for
// checks that are not ours (tools/oracle).
//
// The mistakes are those of the golden data's mutations.json that show layer by layer (the two
// others have tests in kernels/: sinkhorn_19_iters against the mHC vectors). "none" must stay
// green. Exit status 0: as it should be, 1: the check did not see the mistake (or saw one that is
// not there), 2: it did not run.
#include <cstdio>

#include "kernels/fault.h"
#include "model/golden_check.h"
#include "model/golden_output.h"

namespace deepinfer {
namespace {

int Failed(const Status& status) {
  std::fprintf(stderr, "%s\n", MessageOf(status).c_str());
  return 2;
}

int Record(const std::string& folder, const Backend& backend, const std::string& work_dir) {
  const auto written = RecordGolden(RealDisk(), folder, {.backend = backend, .work_dir = work_dir});
  return written.ok() ? 0 : Failed(written.status());
}

int Check(const std::string& folder, const GoldenOptions& options, const std::string& fault) {
  const auto report = RunGoldenCheck(RealDisk(), folder, options);
  if (!report.ok()) return Failed(report.status());
  int num_red = 0;
  for (const GoldenFigure& figure : report->figures) {
    if (figure.pass()) continue;
    ++num_red;
    std::printf("red: %s: %g, limit %g\n", figure.name.c_str(), figure.measured, figure.limit);
  }
  std::printf("%s: %d of %zu figures red\n", fault.c_str(), num_red, report->figures.size());
  return (num_red > 0) == (fault != "none") ? 0 : 1;
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) {
  using namespace deepinfer;
  const std::string_view mode = argc == 4 ? argv[3] : "layers";
  if (argc < 3 || argc > 4 || (mode != "layers" && mode != "whole" && mode != "record")) {
    std::fprintf(stderr, "usage: golden_faults FAULT GOLDEN_DIR [whole | record]\n");
    return 2;
  }
  const std::string fault = argv[1], folder = argv[2];
  SetFault(fault == "none" ? "" : fault);
  ThreadPool threads(1);
  const Backend backend = {.variant = kRefVariant, .threads = &threads};
  const std::string work_dir = StrCat(folder, "-generated-for-", fault);
  if (mode == "record") return Record(folder, backend, work_dir);
  return Check(folder, {backend, work_dir, mode == "layers"}, fault);
}
