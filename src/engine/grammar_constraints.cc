#include "engine/grammar_constraints.h"

#include <utility>

#include "engine/sequence_masks.h"
#include "tokens/output_constraint.h"

namespace deepinfer {
namespace {

static_assert(OutputConstraint::kMaxRollback >= kMaxDrafts);

class GrammarConstraint : public TokenConstraint {
 public:
  GrammarConstraint(std::shared_ptr<const Grammar> grammar, const StructuredOutput& start)
      : constraint_(std::move(grammar), start) {}

  bool FillMask(std::span<uint32_t> mask) override { return constraint_.FillMask(mask); }
  bool Accept(int32_t id) override { return constraint_.Accept(id); }
  void Rollback(int32_t count) override { constraint_.Rollback(count); }

 private:
  OutputConstraint constraint_;
};

}  // namespace

void GrammarConstraints::Build(const StructuredOutput& structured, Done done) {
  StructuredOutput start = structured;
  start.text.clear();  // may be long, and is in the grammar
  source_->Get(structured, [start = std::move(start), done = std::move(done)](
                               StatusOr<std::shared_ptr<const Grammar>> grammar) {
    if (!grammar.ok()) return done(grammar.status());
    done(ConstraintMaker([start, grammar = *std::move(grammar)] {
      return std::make_unique<GrammarConstraint>(grammar, start);
    }));
  });
}

}  // namespace deepinfer
