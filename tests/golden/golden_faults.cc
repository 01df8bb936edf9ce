// One mistake on purpose, and the golden check must turn red: golden_faults FAULT GOLDEN_DIR
//
// The mistakes are those of the golden data's mutations.json that show layer by layer (the two
// others have tests in kernels/: sinkhorn_19_iters against the mHC vectors). "none" must stay
// green. Exit status 0: as it should be, 1: the check did not see the mistake (or saw one that is
// not there), 2: it did not run.
#include <cstdio>

#include "kernels/fault.h"
#include "model/golden_check.h"

int main(int argc, char** argv) {
  using namespace deepinfer;
  if (argc != 3) {
    std::fprintf(stderr, "usage: golden_faults FAULT GOLDEN_DIR\n");
    return 2;
  }
  const std::string fault = argv[1];
  SetFault(fault == "none" ? "" : fault);
  ThreadPool threads(1);
  const std::string work_dir = StrCat(argv[2], "-generated-for-", fault);
  const auto report = RunGoldenCheck(RealDisk(), argv[2],
                                     {.backend = {.variant = kRefVariant, .threads = &threads},
                                      .work_dir = work_dir,
                                      .layers_only = true});
  if (!report.ok()) {
    std::fprintf(stderr, "%s\n", MessageOf(report.status()).c_str());
    return 2;
  }
  int num_red = 0;
  for (const GoldenFigure& figure : report->figures) {
    if (figure.pass()) continue;
    ++num_red;
    std::printf("red: %s: %g, limit %g\n", figure.name.c_str(), figure.measured, figure.limit);
  }
  std::printf("%s: %d of %zu figures red\n", fault.c_str(), num_red, report->figures.size());
  return (num_red > 0) == (fault != "none") ? 0 : 1;
}
