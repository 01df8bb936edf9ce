// The vocabulary of eval/tool_catalogue.h.

#include "eval/tool_catalogue.h"

namespace deepinfer {
namespace {

ToolFamily Travel() {
  return {
      "book|reserve|find|search|cancel|change|check|compare",
      "a flight|a train|a hotel|a trip|a taxi|a bus|a ferry|a seat|a tour|a cabin",
      {{"destination|to_city|arrival", "Where to go", " to {}| with the destination {}",
        Domain::kCity},
       {"origin|from_city|departure", "Where it starts", " from {}| starting in {}", Domain::kCity},
       {"date|day|on_date", "Day of travel", " on {}| for {}", Domain::kDate},
       {"people|passengers|persons", "How many travel", " for {} people| for a group of {}",
        Domain::kSmall},
       {"seat", "Kind of seat", " with {} seats| sitting at the {}", Domain::kOption,
        "window|aisle|middle"},
       {"class", "Travel class", " in {} class| travelling {}", Domain::kOption,
        "economy|business|first"},
       {"email|mail", "Where to send the ticket", ", sent to {}| and mail it to {}", Domain::kMail},
       {"flexible", "May be changed later", ", flexible|, not flexible", Domain::kBool}}};
}

ToolFamily Dining() {
  return {
      "book|reserve|order|cancel|recommend|find",
      "a table|a meal|a dinner|a lunch|a breakfast|a menu|a restaurant|a pizza",
      {{"city|location|town", "City", " in {}| near {}", Domain::kCity},
       {"guests|attendees|people", "Number of guests", " for {} guests| for {} people",
        Domain::kSmall},
       {"time|start_time|at", "Time of day, HH:MM", " at {}| for {}", Domain::kTime},
       {"day|weekday", "Day of the week", " on {}| for {}", Domain::kWeekday},
       {"name|full_name", "Who it is for", " under the name {}| in the name of {}",
        Domain::kFullName},
       {"dish", "What to eat", " with {}| that has {}", Domain::kFood},
       {"vegetarian", "Without meat", ", vegetarian|, not vegetarian", Domain::kBool},
       {"place", "Inside or outside", ", {}| with a place {}", Domain::kOption, "inside|outside"}}};
}

ToolFamily Messages() {
  return {"send|write|draft|forward|schedule|deliver",
          "a message|an email|a letter|a reminder|a note|an invitation|a postcard|a reply|a fax",
          {{"recipient|to|receiver", "Who gets it", " to {}| for {}", Domain::kFirstName},
           {"text|body|content|message", "What it says",
            " saying '{}'| with the text '{}'| that says '{}'", Domain::kPhrase},
           {"priority|urgency|importance", "How urgent it is", " with {} priority|, priority {}",
            Domain::kOption, "low|normal|high"},
           {"subject|topic", "Subject line", " about {}| with the subject {}", Domain::kTitle},
           {"time|start_time|at", "When to send it, HH:MM", " at {}| at exactly {}", Domain::kTime},
           {"copies|cc", "Who gets a copy", " with copies to {}| and copy {}", Domain::kFirstNames},
           {"address", "Mail address", " at the address {}| using {}", Domain::kMail},
           {"signed", "Add a signature", ", signed|, unsigned", Domain::kBool}}};
}

ToolFamily Facts() {
  return {
      "get|find|check|show|look up|fetch|read|predict",
      "the weather|the forecast|the time|the population|the traffic|the temperature|the news|"
      "the sunrise|the rain|the wind|the air quality",
      {{"city|location|town", "City name", " in {}| for {}| of {}", Domain::kCity},
       {"country|nation", "Country name", " in the country {}| for the country {}",
        Domain::kCountry},
       {"date|day|on_date", "Day, YYYY-MM-DD", " on {}| for {}", Domain::kDate},
       {"days|num_days", "Number of days", " for the next {} days| over {} days", Domain::kSmall},
       {"unit|units", "Unit of the result", " in {}| measured in {}", Domain::kOption,
        "celsius|fahrenheit|kelvin"},
       {"language|lang", "Language of the answer", " in {}| written in {}", Domain::kOption,
        "English|French|German|Spanish"},
       {"detailed", "With all details", ", with details|, without details", Domain::kBool}},
      true};
}

ToolFamily Calendar() {
  return {
      "create|add|plan|move|delete|schedule|cancel|confirm",
      "a meeting|an event|an appointment|a lesson|a party|a call|an interview|a workshop",
      {{"title|headline", "Name of the event", " called {}| with the title {}", Domain::kTitle},
       {"date|day|on_date", "Day, YYYY-MM-DD", " on {}| for {}", Domain::kDate},
       {"time|start_time|at", "Start, HH:MM", " at {}| starting at {}", Domain::kTime},
       {"minutes|duration|duration_minutes", "Length in minutes",
        " for {} minutes| lasting {} minutes", Domain::kMinutes},
       {"guests|attendees|people", "Who comes", " with {}| and invite {}", Domain::kFirstNames},
       {"room|room_id", "Room code", " in room {}| in {}", Domain::kCode},
       {"online", "Held online", ", online|, not online", Domain::kBool},
       {"note|comment", "What to remember", " with the note '{}'| noting '{}'", Domain::kPhrase}}};
}

ToolFamily Shop() {
  return {
      "order|buy|return|reserve|price|exchange|ship",
      "an item|a product|a gift|an article|a part|a parcel|a piece of equipment",
      {{"product|item", "What it is", ": {}| of the kind {}", Domain::kObject},
       {"quantity|amount|count", "How many", ", quantity {}|, {} pieces", Domain::kSmall},
       {"color|colour", "Colour", " in {}|, color {}", Domain::kColour},
       {"size", "Size", " in size {}|, size {}", Domain::kOption, "small|medium|large"},
       {"max_price|price_limit|budget", "Highest price", " for at most {}| up to a price of {}",
        Domain::kDecimal},
       {"customer|buyer", "Name of the customer", " for {}| for the customer {}",
        Domain::kFullName},
       {"order_id|reference", "Number of the order", " from order {}|, order id {}", Domain::kCode},
       {"gift_wrap", "Wrap it as a gift", ", gift wrapped|, not gift wrapped", Domain::kBool}}};
}

ToolFamily Home() {
  return {"turn on|turn off|set|dim|test|switch|adjust",
          "the light|the heating|the lamp|the fan|the radio|the alarm|the oven|the camera|"
          "the door lock|the sprinkler",
          {{"room|place", "Which room", " in the {}| of the {}", Domain::kOption,
            "kitchen|bedroom|bathroom|office|garage|hall"},
           {"level|value", "Level, 1 to 99", " to level {}| at level {}", Domain::kAge},
           {"color|colour", "Colour", " to {}| in {}", Domain::kColour},
           {"time|start_time|at", "When, HH:MM", " at {}| from {}", Domain::kTime},
           {"minutes|duration|duration_minutes", "For how long",
            " for {} minutes| during {} minutes", Domain::kMinutes},
           {"mode", "Mode", " in {} mode| using {} mode", Domain::kOption, "eco|comfort|night"},
           {"repeat", "Every day", ", every day|, only once", Domain::kBool}}};
}

ToolFamily Files() {
  return {
      "open|delete|copy|rename|upload|download|convert|print|archive|share",
      "a file|a document|a report|a picture|a table sheet|a backup|a page",
      {{"path|file|file_name", "Path of the file", " {}| at {}| stored at {}", Domain::kPath},
       {"format|output_format|file_type", "Output format", " as {}| in {} format", Domain::kOption,
        "pdf|csv|json|text"},
       {"copies|num_copies", "Number of copies", " in {} copies|, {} times", Domain::kSmall},
       {"target|target_path|destination", "Where it goes", " to {}| into {}", Domain::kPath},
       {"owner", "Owner of the file", " owned by {}| belonging to {}", Domain::kFirstName},
       {"overwrite", "Replace an old one", ", overwriting|, without overwriting", Domain::kBool},
       {"tags|labels", "Labels", " with the tags {}| tagged {}", Domain::kWords}}};
}

ToolFamily People() {
  return {
      "create|update|delete|find|block|register|invite|list",
      "a user|a customer|a contact|an account|a member|a patient|a student|an employee",
      {{"name|full_name", "Full name", " named {}| called {}| with the name {}", Domain::kFullName},
       {"email|mail", "Mail address", " with the address {}|, email {}", Domain::kMail},
       {"age", "Age in years", " aged {}|, {} years old", Domain::kAge},
       {"role|position", "Role", " as {}| with the role {}", Domain::kOption,
        "admin|editor|viewer"},
       {"city|location|town", "Home town", " from {}| living in {}", Domain::kCity},
       {"job|occupation", "Profession", " working as {}| with the job {}", Domain::kJob},
       {"active", "May log in", ", active|, not active", Domain::kBool},
       {"tags|labels", "Labels", " with the tags {}| tagged {}", Domain::kWords}}};
}

ToolFamily Media() {
  return {"play|pause|find|recommend|record|stream|rate|download",
          "a song|a film|a book|a podcast|a playlist|a concert|a radio show|a video",
          {{"title|headline", "Title", " called {}| with the title {}", Domain::kTitle},
           {"artist|creator", "Who made it", " by {}| from {}", Domain::kFullName},
           {"volume", "Volume, 1 to 99", " at volume {}| with volume {}", Domain::kAge},
           {"genre", "Kind", " of the genre {}|, genre {}", Domain::kOption,
            "rock|jazz|pop|classical|folk"},
           {"year", "Year it came out", " from {}| of the year {}", Domain::kYear},
           {"device|output", "Where to play it", " on the {}| using the {}", Domain::kOption,
            "phone|speaker|television|laptop"},
           {"shuffle", "In random order", ", shuffled|, not shuffled", Domain::kBool}}};
}

ToolFamily Money() {
  return {
      "transfer|request|pay|convert|refund|record|approve",
      "a payment|an invoice|a deposit|a loan|a donation|a bill|a salary|an amount",
      {{"amount|sum|total", "How much", " of {}| over {}", Domain::kAmount},
       {"currency|money_unit", "Currency", " in {}|, currency {}", Domain::kOption,
        "euro|dollar|pound|yen|franc"},
       {"recipient|to|receiver", "Who gets it", " to {}| for {}", Domain::kFullName},
       {"account|account_id", "Account code", " from account {}| using account {}", Domain::kCode},
       {"due|due_date", "Due date", " due on {}| by {}", Domain::kDate},
       {"rate", "Rate in percent", " at a rate of {}| with rate {}", Domain::kDecimal},
       {"note|comment", "Purpose", " with the note '{}'| noting '{}'", Domain::kPhrase},
       {"monthly", "Every month", ", every month|, only once", Domain::kBool}}};
}

ToolFamily Records() {
  return {
      "search|list|count|filter|export|sort|show",
      "the tickets|the orders|the logs|the articles|the books|the tasks|the photos|"
      "the invoices|the comments|the issues",
      {{"query|q|search_term", "Words to look for", " about {}| containing {}", Domain::kObject},
       {"limit|max_results|count", "Most results", ", at most {}| with a limit of {}",
        Domain::kSmall},
       {"status|state", "State", " that are {}| with status {}", Domain::kOption,
        "open|closed|waiting"},
       {"order|sort", "Sort order", " in {} order|, sorted {}", Domain::kOption,
        "ascending|descending|random"},
       {"author|created_by", "Who wrote it", " by {}| written by {}", Domain::kFullName},
       {"since", "First day", " since {}| after {}", Domain::kDate},
       {"labels|tags", "Labels", " with the labels {}| labelled {}", Domain::kWords},
       {"archived", "Old ones too", ", with archived ones|, without archived ones",
        Domain::kBool}}};
}

ToolFamily Measures() {
  return {"calculate|compute|estimate|measure|convert|compare|round",
          "the area|the distance|the tax|the speed|the weight|the volume|the cost|the price|"
          "the average",
          {{"width", "Width", " for width {}| with a width of {}", Domain::kDecimal},
           {"height", "Height", " for height {}| with a height of {}", Domain::kDecimal},
           {"count", "How many", " for {} pieces| with a count of {}", Domain::kSmall},
           {"value", "Value", " of {}| for the value {}", Domain::kDecimal},
           {"unit|units", "Unit", " in {}| using {}", Domain::kOption,
            "meters|feet|miles|kilograms|pounds"},
           {"digits", "Decimals", " to {} digits| with {} digits", Domain::kSmall},
           {"exact", "Do not round", ", exactly|, roughly", Domain::kBool}},
          true};
}

ToolFamily Animals() {
  return {"feed|find|adopt|register|track|describe|name",
          "a pet|an animal|a bird|a farm animal|a zoo animal",
          {{"species|animal", "Kind of animal", ", a {}| of the species {}", Domain::kAnimal},
           {"name|pet_name", "Its name", " named {}| called {}", Domain::kFirstName},
           {"food", "What it gets", " with {}| using {}", Domain::kFood},
           {"age", "Age in years", " aged {}|, {} years old", Domain::kAge},
           {"weight", "Weight in kg", " weighing {} kg| with a weight of {} kg", Domain::kDecimal},
           {"color|colour", "Colour", " with the color {}|, color {}", Domain::kColour},
           {"healthy", "Is it well", ", healthy|, not healthy", Domain::kBool}}};
}

}  // namespace

const std::vector<ToolFamily>& ToolFamilies() {
  static const auto* const kFamilies = new std::vector<ToolFamily>{
      Travel(), Dining(), Messages(), Facts(), Calendar(), Shop(),     Home(),
      Files(),  People(), Media(),    Money(), Records(),  Measures(), Animals()};
  return *kFamilies;
}

}  // namespace deepinfer
