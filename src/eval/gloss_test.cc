#include "eval/gloss.h"

#include <gtest/gtest.h>

#include <set>

#include "eval/exercise_for_tests.h"

namespace deepinfer {
namespace {

TEST(Material, IsReadAsDescribed) {
  const Material& material = SmallMaterial();
  EXPECT_EQ(material.hay().size(), 2u);
  EXPECT_EQ(material.words().size(), 4u);
  EXPECT_EQ(material.tools().size(), 1u);
  ASSERT_EQ(material.core_glosses().size(), 2u);
  EXPECT_EQ(material.core_glosses()[1].synonyms, "sprint; dash");
  ASSERT_EQ(material.other_glosses().size(), 1u);
  EXPECT_EQ(material.other_glosses()[0].word, "odd");
}

std::string ErrorOf(const MaterialTexts& texts) {
  const auto parsed = Material::Parse(texts);
  return parsed.ok() ? "" : MessageOf(parsed.status());
}

TEST(Material, BrokenFilesAreRefusedByName) {
  MaterialTexts texts = SmallTexts();
  texts.glosses += "lamp\tnoun\t1\n";
  EXPECT_EQ(ErrorOf(texts),
            "material: glosses.tsv line 4: expected word, part of speech, definition, synonyms and "
            "0 or 1 with tabs between, found \"lamp\\tnoun\\t1\"");
  texts = SmallTexts();
  texts.hay = "\n";
  EXPECT_EQ(ErrorOf(texts),
            "material: hay.txt: expected lines of text, found none; make it again with "
            "tools/nano/corpus.py");
}

TEST(Material, OfAWordTheFirstDefinitionStays) {
  MaterialTexts texts = SmallTexts();
  texts.glosses += "kite\tnoun\ta bird of prey\t\t0\n";
  const auto material = Material::Parse(texts);
  ASSERT_TRUE(material.ok());
  EXPECT_EQ((*material)->core_glosses().size() + (*material)->other_glosses().size(), 3u);
}

TEST(Gloss, TrainingAnswersWithTheDefinition) {
  SeededRng rng(1);
  std::set<std::string> wordings;
  for (int i = 0; i < 300; ++i) {
    DrawContext context = ContextForTests(rng, Split::kTraining, 1024);
    const StatusOr<Exercise> exercise = DrawGloss(context);
    ASSERT_TRUE(exercise.ok());
    std::string ask = TextOfMessage(exercise->conversation.messages[0]);
    const std::string answer = TextOfMessage(exercise->conversation.messages[1]);
    if (const size_t at = ask.find("kite"); at != ask.npos) {
      EXPECT_EQ(answer, "a light frame covered with paper that flies in the wind");
      wordings.insert(ask.replace(at, 4, "W"));
    }
  }
  EXPECT_EQ(wordings.size(), 8u);
  EXPECT_FALSE(wordings.contains("Explain the meaning of the word W."));
}

TEST(Gloss, HeldOutAsksInAWordingOfItsOwn) {
  SeededRng rng(2);
  DrawContext context = ContextForTests(rng, Split::kHeldOut, 1024);
  const StatusOr<Exercise> exercise = DrawGloss(context);
  ASSERT_TRUE(exercise.ok());
  EXPECT_EQ(exercise->grading, Grading::kGlossWords);
  EXPECT_FALSE(exercise->gloss_words.empty());
  EXPECT_EQ(TextOfMessage(exercise->conversation.messages[0]).find("Explain the meaning of the "),
            0u);
  EXPECT_EQ(TextOfMessage(exercise->answer()), "");
}

TEST(Gloss, RefusesWithoutWhatItNeeds) {
  SeededRng rng(3);
  DrawContext context{
      .rng = rng, .split = Split::kTraining, .max_tokens = 1024, .tokenizer = NanoTokenizer()};
  EXPECT_EQ(MessageOf(DrawGloss(context).status()),
            "gloss: expected material with definitions, found none");
  context.split = Split::kHeldOut;
  EXPECT_EQ(MessageOf(DrawGloss(context).status()),
            "gloss: expected the check of its words, found none");
}

TEST(Gloss, LongDefinitionsEndAtAComma) {
  const std::string clause = "a word about a thing that is rather long and goes on for some time";
  EXPECT_EQ(ShortDefinition("short; and whole"), "short; and whole");
  EXPECT_EQ(ShortDefinition(clause + "; " + clause), clause);
  EXPECT_EQ(ShortDefinition(clause + ", " + clause), clause);
  const std::string endless(300, 'x');
  EXPECT_EQ(ShortDefinition(endless), endless);
}

TEST(ContentWords, EndingsAndWordsWithoutContentDoNotCount) {
  EXPECT_EQ(ContentWordHashes("The lamps, of a burned frame."),
            ContentWordHashes("lamp burning FRAMES"));
  EXPECT_EQ(ContentWordHashes("of the and").size(), 0u);
  EXPECT_EQ(ContentWordHashes("bus").size(), 1u);
  EXPECT_EQ(ContentWordHashes("gas"), ContentWordHashes("gas"));
  EXPECT_NE(ContentWordHashes("gas"), ContentWordHashes("ga"));  // a stem keeps three letters
  EXPECT_EQ(NumContentWordsFound("a lamp and a lamp", ContentWordHashes("lamps and oil")), 1u);
}

TEST(GlossCheckFile, ReadsWhatItWrites) {
  const GlossCheck& check = SmallGlossCheck();
  ASSERT_EQ(check.entries().size(), 2u);
  const StatusOr<GlossCheck> read = GlossCheck::Parse(check.Text(), "f");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(std::equal(read->entries().begin(), read->entries().end(), check.entries().begin(),
                         check.entries().end()));
}

TEST(GlossCheckFile, BrokenLinesAreRefusedByNumber) {
  const std::string wanted =
      "expected a word, a tab and hashes of eight hexadecimal digits with commas between, found ";
  for (const std::string line : {"lamp", "lamp\t", "lamp\t0123456", "lamp\t0123456g",
                                 "lamp\t01234567,", "\t01234567", "lamp\t01234567;89abcdef"}) {
    const StatusOr<GlossCheck> parsed = GlossCheck::Parse("kite\t01234567\n" + line + "\n", "f");
    ASSERT_FALSE(parsed.ok()) << line;
    EXPECT_EQ(MessageOf(parsed.status()), StrCat("f line 2: ", wanted, "\"", OneLine(line), "\""));
  }
  EXPECT_EQ(MessageOf(GlossCheck::Parse("", "f").status()),
            "f: expected a word a line, found nothing");
}

}  // namespace
}  // namespace deepinfer
