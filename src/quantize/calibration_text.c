/* The texts of the built-in calibration set. */
#include "quantize/calibration_text.h"

static const calibration_sample samples[] = {
    {"What is the tallest mountain in Africa, and in which country is it?",
     "The tallest mountain in Africa is Mount Kilimanjaro, a dormant volcano in the north-east of Tanzania. Its highest point, Uhuru Peak, "
     "rises 5,895 metres (19,341 feet) above sea level."},
    {"Write a short Python function that returns the n-th Fibonacci number, and explain how it works.",
     "Here is a simple version:\n\n```python\ndef fibonacci(n: int) -> int:\n    if n < 0:\n        raise ValueError(\"n must not be "
     "negative\")\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n\nprint([fibonacci(i) for i in "
     "range(10)])  # [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]\n```\n\nThe loop keeps two neighbouring numbers of the sequence. In each step the "
     "pair moves one place to the right, so after n steps `a` holds the answer. It needs O(n) time and constant memory."},
    {NULL,
     "static int count_words(const char *s) {\n\tint n = 0, inside = 0;\n\tfor (; *s; s++) {\n\t\tif (isspace((unsigned char)*s)) {\n\t\t\t"
     "inside = 0;\n\t\t} else if (!inside) {\n\t\t\tinside = 1;\n\t\t\tn++;\n\t\t}\n\t}\n\treturn n;\n}\n\nSELECT c.name, SUM(o.total) AS "
     "revenue FROM customers c JOIN orders o ON o.customer_id = c.id WHERE o.placed_at >= '2021-01-01' GROUP BY c.name HAVING "
     "SUM(o.total) > 1000 ORDER BY revenue DESC LIMIT 10;\n\n{\"id\": 4711, \"tags\": [\"alpha\", \"beta\"], \"price\": 19.99, "
     "\"available\": true, \"note\": null}\n\n<ul class=\"menu\"><li><a href=\"/index.html\">Home</a></li><li>About us</li></ul>\n"},
    {NULL,
     " = Solenne Varga = \n \n Solenne Varga ( 14 March 1902 – 2 November 1981 ) was a botanist and illustrator who described more than "
     "two hundred species of alpine plants . She studied at the university of Graz , where she took her degree in 1925 , and joined three "
     "expeditions to the Caucasus between 1927 and 1934 . Her drawings , made in ink and watercolour , were praised for their accuracy ; "
     "the critic R. Halden wrote that \" nobody before her had made a leaf look so alive without adding anything that is not there \" . \n"
     " \n = = Early life = = \n \n Varga was born in a village near Kronstadt , the second of five children of a schoolteacher and a "
     "seamstress . At the age of 11 she won a scholarship , and in 1920 she was among the first 6 women admitted to the faculty . She "
     "later recalled that the long walks to school had taught her the names of \" every weed along the road \" . \n"},
    {"I have 3 boxes with 12 pencils each and I give away 7 pencils. How many are left? Show the steps.",
     "Step 1: Count all the pencils: 3 × 12 = 36.\nStep 2: Subtract those you give away: 36 − 7 = 29.\n\nSo 29 pencils are left."},
    {"Translate \"Good morning, how are you?\" into French, German and Spanish.",
     "French: « Bonjour, comment allez-vous ? »\nGerman: „Guten Morgen, wie geht es Ihnen?“\nSpanish: «Buenos días, ¿cómo está usted?»"},
    {NULL,
     "The laboratory measured a mean of 0.0731 mol/L (n = 48, σ = 0.004) at 298.15 K; the difference from the control was not significant "
     "(p > 0.05). In a closed system the energy is E = mc², and the ideal gas obeys pV = nRT. Table 2: 2017 1,204,331 +3.2% | 2018 "
     "1,251,870 +3.9% | 2019 1,249,002 −0.2% | 2020 987,655 −20.9%. See https://example.org/report?id=17&lang=en or write to "
     "office@example.org. 東京は日本の首都です。 Москва — столица России. Η Αθήνα είναι πρωτεύουσα της Ελλάδας. "
     "🙂🚀 "
     "¡Hola! "
     "naïve "
     "café\n"},
    {NULL,
     "\"You are late,\" said Miriam without looking up from the map. \"The tide turns at six, and it is a quarter past already.\"\n\n\"The "
     "bridge was closed,\" Tom answered. He put the lamp on the table, shook the rain from his coat and smiled. \"Besides, you can't sail "
     "in this fog. Nobody could!\"\n\nShe laughed then, and for a moment the room seemed warmer. Outside, somewhere beyond the breakwater, "
     "a bell rang twice... and then, very faintly, a third time.\n"},
    {"Hello!", "Hello! How can I help you today?"},
    {"Who are you and what can you do?",
     "I am an AI assistant. I can answer questions, explain ideas, help you write or edit texts, work through problems step by step and "
     "give "
     "suggestions. Tell me what you are working on."},
};

const calibration_sample* calibration_samples(size_t* count) {
  *count = sizeof samples / sizeof samples[0];
  return samples;
}
