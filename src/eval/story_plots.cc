#include "eval/story_plots.h"

namespace deepinfer {
namespace {

constexpr std::string_view kOpening =
    "Once there was {a kind} called {hero}, who lived near {place}.|"
    "Long ago {a kind} lived near {place}. The name of the {kind} was {hero}.|"
    "Near {place} lived {a kind}. Everybody called {him} {hero}.|"
    "{hero} was {a kind} and lived close to {place}.|"
    "This is the story of {hero}, {a kind} from {place}.";

constexpr std::string_view kClosing =
    "From that day on {hero} and {friend} were the best of friends.|"
    "And since then {hero} and {friend} meet every week at {place}.|"
    "{hero} never forgot that day, and neither did {friend}.|"
    "When they came home, it was already dark, but both of them were happy.|"
    "That night {hero} slept well and dreamed of {friend}.|"
    "They laughed about it for a long time.";

StoryPlot LostThing() {
  return {kOpening,
          "One morning {hero} could not find {his} {colour} {thing}.|"
          "One day the {colour} {thing} that {hero} loved so much was gone.|"
          "{hero} had {a thing}, {colour} and beautiful, but one day it was lost.",
          "{He} looked under the bed and behind the door, but it was not there.|"
          "{He} searched the whole house and found nothing but dust.|"
          "{He} asked everybody, but nobody had seen it.",
          "On the way to {far place} {he} met {friend}, {a friend kind}.|"
          "Then {a friend kind} came by, and the name of the {friend kind} was {friend}.",
          "\"What are you looking for?\" asked {friend}. \"For my {thing},\" said {hero}.|"
          "\"Why are you so sad?\" asked {friend}. \"My {thing} is gone,\" said {hero}.",
          "So they looked together, first near {place} and then at {far place}.|"
          "\"Two of us see more than one,\" said {friend}, and they went to {far place}.",
          "There, between two stones, something {colour} was lying in the grass. It was the "
          "{thing}!|"
          "At last {friend} saw something {colour} behind a tree. It was the {thing}!",
          "{hero} was so glad that {he} shared all {his} {food} with {friend}.|"
          "\"Thank you,\" said {hero}, and they ate {food} together.",
          kClosing};
}

StoryPlot Storm() {
  return {kOpening,
          "One evening dark clouds came, and a strong wind began to blow.|"
          "One day a great storm came over the land.|"
          "It rained for three days, and then the wind came too.",
          "{hero} was on the way home from {far place} and had nothing but {a thing}.|"
          "{hero} sat at home with {a thing} in the hand and listened to the wind.",
          "Then {he} heard a small voice. It was {friend}, {a friend kind}, who was wet and cold.|"
          "In the rain stood {friend}, {a friend kind}, and did not know where to go.",
          "\"Come with me,\" said {hero}, \"there is room for two.\"|"
          "\"You cannot stay out here,\" said {hero}. \"Come in!\"",
          "They made a fire, ate warm {food} and told each other stories.|"
          "They sat close together, ate {food} and waited for the sun.",
          "In the morning the storm was over, and the sky was blue again.|"
          "The next day the sun shone, and all the birds were singing.",
          "{friend} gave {hero} {a thing} to say thank you.|"
          "\"I will never forget this,\" said {friend}.",
          kClosing};
}

StoryPlot Learning() {
  return {kOpening,
          "{hero} could do many things, but {he} could not swim.|"
          "More than anything {hero} wanted to learn how to swim.|"
          "Everybody could swim, only {hero} was afraid of the water.",
          "\"I will never learn it,\" {he} said and threw {his} {thing} into the grass.|"
          "{He} sat at the water with {his} {thing} and looked at the others.",
          "{friend}, {a friend kind}, saw this and came closer.|"
          "One day {friend} came by, {a friend kind} who had swum in many rivers.",
          "\"I was afraid too,\" said {friend}. \"We will start where the water is low.\"|"
          "\"Take my hand,\" said {friend}, \"and go in slowly.\"",
          "On the first day they only stood in the water. On the second day {hero} could float.|"
          "They tried it every morning, and every day it went a little better.",
          "After one week {hero} swam across the water and back again.|"
          "And one day {hero} noticed that {he} was swimming, all alone.",
          "\"I did it!\" cried {hero}, and they ate {food} on the shore.|"
          "All the others clapped, and there was {food} for everybody.",
          kClosing};
}

StoryPlot Birthday() {
  return {kOpening,
          "It was the birthday of {friend}, {a friend kind}, and {hero} had no present.|"
          "{hero} had a good friend, {a friend kind} called {friend}, whose birthday was near.",
          "{He} went to {far place} to buy {a thing}, but it was too expensive.|"
          "{He} looked for a present at {far place}, but nothing was good enough.",
          "So {hero} took some old wood and began to build {a thing}.|"
          "\"Then I will make something myself,\" thought {hero}, and began to work on {a thing}.",
          "{He} worked all day and all night and painted it {colour}.|"
          "It took three days, and in the end it was {colour} and shone in the sun.",
          "When {friend} opened the parcel, nobody said a word.|"
          "On the birthday {hero} put the parcel on the table. {friend} opened it slowly.",
          "\"This {thing} is the best present of all,\" said {friend} at last.|"
          "\"You made it for me?\" asked {friend}. \"I will keep this {thing} forever.\"",
          "Then they ate {food} and sang until the moon came out.|"
          "There was {food} for all, and they danced until midnight.",
          kClosing};
}

StoryPlot River() {
  return {kOpening,
          "One day {hero} wanted to go to {far place}, but the river was too high.|"
          "On the other side of the river was {far place}, and {hero} had never been there.",
          "The bridge was broken, and {he} did not know what to do.|"
          "There was no bridge and no boat, only the cold, fast water.",
          "On the other side stood {friend}, {a friend kind}, who also wanted to cross.|"
          "{friend}, {a friend kind}, sat on the shore and had the same problem.",
          "\"I have {a thing},\" called {hero}. \"And I have a long rope,\" called {friend}.|"
          "\"Let us build a new bridge,\" said {hero}, \"you from there and I from here.\"",
          "They carried wood and stones until their backs hurt.|"
          "They worked from morning to evening, and only stopped to eat some {food}.",
          "After a week the bridge was ready, and they met in the middle.|"
          "On the fifth day they shook hands in the middle of the new bridge.",
          "They painted it {colour}, so that everybody could see it.|"
          "Now everybody could go to {far place}, and all were thankful.",
          kClosing};
}

StoryPlot Winter() {
  return {kOpening,
          "The winter was long, and there was little to eat.|"
          "It snowed and snowed, and everything was white.",
          "{hero} had worked hard in the summer, so {his} house was full of {food}.|"
          "Only {hero} had enough {food}, for {he} had thought of the winter.",
          "One night somebody knocked. It was {friend}, {a friend kind} from {far place}.|"
          "Then {friend} came from {far place}, {a friend kind} who had not eaten for days.",
          "\"I have nothing left but this {colour} {thing},\" said {friend}. \"Will you take it?\"|"
          "\"I can give you my {colour} {thing} for some {food},\" said {friend}.",
          "{hero} looked at the {thing} and then at {friend}.|"
          "{hero} thought for a moment and smiled.",
          "\"Keep it,\" {he} said. \"Sit down and eat. There is enough for two.\"|"
          "\"You do not have to pay,\" {he} said. \"Stay here until the spring.\"",
          "When the snow was gone, they planted a garden together.|"
          "In spring {friend} helped {hero} in the garden every day.",
          kClosing};
}

StoryPlot Race() {
  return {kOpening,
          "Every year there was a great race from {place} to {far place}.|"
          "One day a race was held, and the prize was {a thing} of gold.",
          "{hero} was not fast, but {he} wanted to try it.|"
          "\"I will never win,\" thought {hero}, \"but I will run as well as I can.\"",
          "The fastest of all was {friend}, {a friend kind} who had won three times.|"
          "Next to {hero} stood {friend}, {a friend kind} with very long legs.",
          "They ran over the hill and through the wood, and soon {friend} was far ahead.|"
          "At first all ran together, but soon only {friend} could be seen in front.",
          "But then {friend} fell over a stone and could not get up.|"
          "Behind the last tree {hero} found {friend} sitting on the ground with a bad foot.",
          "{hero} could have won, but {he} stopped. \"Lean on me,\" {he} said.|"
          "\"Run on,\" said {friend}, but {hero} shook {his} head and helped.",
          "Slowly they came to {far place}, side by side, as the last of all.|"
          "They came in last, but nobody had ever heard such loud clapping.",
          "The judge gave both of them the prize, and a big basket of {food}.|"
          "That evening they shared the {food} that {hero} had brought along.",
          kClosing};
}

StoryPlot Noise() {
  return {kOpening,
          "One night {he} heard a strange noise that came from {far place}.|"
          "Every night there was a strange noise, and nobody could sleep.",
          "It sounded like {a thing} that falls down the stairs again and again.|"
          "First it was quiet, then it was loud, and then it was quiet again.",
          "\"Somebody has to look,\" said {hero}, took a lantern and went out.|"
          "All were afraid, but {hero} took a light and went to {far place}.",
          "Behind a wall sat {friend}, {a friend kind}, with a {colour} drum.|"
          "There {he} found {friend}, {a friend kind}, who was beating on an old pot.",
          "\"I cannot sleep,\" said {friend}, \"and so I make music.\"|"
          "\"I am so alone here,\" said {friend}, \"and music is all I have.\"",
          "\"Then play by day, and we will all come and listen,\" said {hero}.|"
          "\"Play for us tomorrow,\" said {hero}, \"but let us sleep tonight.\"",
          "The next day there was a concert, with {food} for everybody.|"
          "So they held a concert near {place}, and it was a great success.",
          kClosing};
}

StoryPlot Seed() {
  return {kOpening,
          "In an old {thing} {hero} found a small {colour} seed.|"
          "One day the wind blew a small {colour} seed in front of {his} door.",
          "{He} put it into the earth near {place} and gave it water every day.|"
          "{He} planted it and waited, but for a long time nothing happened.",
          "\"Nothing will grow there,\" said {friend}, {a friend kind} who came by.|"
          "{friend}, {a friend kind} from {far place}, only laughed about it.",
          "But {hero} was patient and came back every morning.|"
          "\"Wait and see,\" said {hero}, and went on.",
          "In spring there was a green leaf, and in summer a tall flower.|"
          "One morning something green was there, and it grew and grew.",
          "Even {friend} had to stop and look. \"I was wrong,\" said {friend}.|"
          "\"How beautiful!\" said {friend}. \"Can you show me how to do that?\"",
          "{hero} gave {friend} three new seeds, and they ate {food} under the leaves.|"
          "So {hero} showed {friend} how to plant, and soon there was a whole garden.",
          kClosing};
}

StoryPlot Map() {
  return {kOpening,
          "In {his} attic {hero} found a map with a red cross on it.|"
          "One day {hero} found an old map in a bottle.",
          "The cross was near {far place}, so {he} packed some {food} and went off.|"
          "\"A treasure!\" thought {hero}, took {a thing} and left the house.",
          "On the way {he} met {friend}, {a friend kind} who knew every path.|"
          "Soon {he} was lost, but then {friend} came along, {a friend kind}.",
          "\"If you show me the way, we share what we find,\" said {hero}.|"
          "\"I will come with you,\" said {friend}. \"Two are never bored.\"",
          "They walked over hills and through a dark wood until they saw the place.|"
          "The way was long, and they told each other everything about their lives.",
          "They dug for hours and found an old box. In it was {a thing}, and nothing else.|"
          "Under a flat stone was a box, and in the box was only {a thing}.",
          "First they were quiet, and then they had to laugh.|"
          "\"No gold,\" said {friend}. \"But a good day,\" said {hero}.",
          kClosing};
}

}  // namespace

const std::vector<StoryPlot>& StoryPlots() {
  static const auto* const kPlots =
      new std::vector<StoryPlot>{LostThing(), Storm(), Learning(), Birthday(), River(),
                                 Winter(),    Race(),  Noise(),    Seed(),     Map()};
  return *kPlots;
}

}  // namespace deepinfer
