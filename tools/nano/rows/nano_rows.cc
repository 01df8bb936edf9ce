// nano_rows: writes an endless stream of training rows to standard output. See README.md.
//
// Its own program, without the engine, because it runs where the model is trained, a dozen at once.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/disk.h"
#include "eval/gloss.h"
#include "row_maker.h"
#include "row_output.h"

namespace deepinfer {
namespace {

struct Flags {
  std::string model, material, mix, gloss_check;
  int32_t row_tokens = 2048;
  uint64_t seed = 0;
  int64_t num_rows = 0;  // 0: without end
  bool text = false, stats = false;
};

Status WriteOut(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) return OkStatus();
  return MakeStatus(StatusCode::kInternal, "standard output: writing failed");
}

Status WriteRows(const Flags& flags, RowMaker& maker, const std::vector<MixPart>& mix,
                 const Tokenizer& tokenizer) {
  RowStatistics statistics(mix);
  for (int64_t i = 0; flags.num_rows == 0 || i < flags.num_rows; ++i) {
    DI_ASSIGN_OR_RETURN(const Row row, maker.Next());
    if (flags.stats) {
      statistics.Add(row);
    } else {
      DI_RETURN_IF_ERROR(WriteOut(flags.text ? RowText(row, mix[row.mix_idx].kind->name, tokenizer)
                                             : RowBytes(row)));
    }
  }
  return flags.stats ? WriteOut(statistics.Text()) : OkStatus();
}

StatusOr<std::unique_ptr<const Material>> LoadMaterial(const Flags& flags) {
  if (flags.material.empty()) return std::unique_ptr<const Material>();
  return Material::Load(RealDisk(), flags.material);
}

Status WriteGlossCheck(const Flags& flags, const Material* material) {
  if (material == nullptr) return InvalidArgument("--gloss-check: expected --material too");
  return RealDisk().WriteText(flags.gloss_check, MakeGlossCheck(*material).Text());
}

Status Run(const Flags& flags) {
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<const Material> material, LoadMaterial(flags));
  if (!flags.gloss_check.empty()) return WriteGlossCheck(flags, material.get());
  if (flags.model.empty() || flags.mix.empty()) {
    return InvalidArgument("expected --model and --mix; nano_rows --help says more");
  }
  if (flags.stats && flags.num_rows == 0) return InvalidArgument("--stats: expected --rows too");
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                      Tokenizer::Load(RealDisk(), flags.model + "/tokenizer.json"));
  DI_ASSIGN_OR_RETURN(const PromptTexts texts, LoadPromptTexts(RealDisk(), flags.model));
  DI_ASSIGN_OR_RETURN(const ControlIds control, ControlIds::Of(*tokenizer));
  DI_ASSIGN_OR_RETURN(const std::vector<MixPart> mix, ParseMix(flags.mix));
  RowMaker maker({.mix = mix, .row_tokens = flags.row_tokens, .seed = flags.seed}, *tokenizer,
                 control, texts, material.get());
  return WriteRows(flags, maker, mix, *tokenizer);
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Writes rows of exercises for training to standard output, or tells about them.");
  app.add_option("--model", flags.model, "folder with tokenizer.json and encoding/");
  app.add_option("--material", flags.material, "folder of tools/nano/corpus.py; optional");
  app.add_option("--mix", flags.mix, "tasks and their shares of the rows: needle=0.2,copy=0.1");
  app.add_option("--row-tokens", flags.row_tokens, "tokens a row")->check(CLI::Range(64, 1 << 20));
  app.add_option("--seed", flags.seed, "another seed, other rows");
  app.add_option("--rows", flags.num_rows, "how many; 0: without end")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--text", flags.text, "rows as text, answers between « and »");
  app.add_flag("--stats", flags.stats, "no rows but a table of what they hold");
  app.add_option("--gloss-check", flags.gloss_check,
                 "write the hashes that grade definitions to this file, and nothing else");
  CLI11_PARSE(app, argc, argv);
  const Status status = Run(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "nano_rows: %s\n", MessageOf(status).c_str());
  return 1;
}

}  // namespace
}  // namespace deepinfer

int main(int argc, char** argv) { return deepinfer::Main(argc, argv); }
