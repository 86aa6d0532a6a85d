/* The texts of the built-in calibration set. */
#include "quantize/calibration_text.h"

static const calibration_sample samples[] = {
    {"What is the tallest mountain in Africa, and in which country is it?",
     "The tallest mountain in Africa is Mount Kilimanjaro, a dormant volcano in the north-east of Tanzania. Its highest point, Uhuru Peak, "
     "rises 5,895 metres (19,341 feet) above sea level."},
    {NULL,
     " The harbour town of Elmstead lies on the northern bank of the river Tarn, about forty kilometres from its mouth. First mentioned in "
     "a "
     "charter of 1187, it grew around a market that was held every second Thursday, and by the end of the fourteenth century it had some "
     "3,200 inhabitants, two churches and a grammar school. The great fire of 1611 destroyed most of the timber houses in the lower town; "
     "the rebuilding, directed by the architect Johan Feldt, introduced the brick façades and stepped gables for which the waterfront is "
     "known today. During the nineteenth century the railway reached the town, and with it came cotton mills, a shipyard and a brewery. "
     "The shipyard closed in 1978 after a long strike, but one of its dry docks has been restored and now houses a museum of river "
     "navigation, which received 84,000 visitors in 2012. \n"},
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
    {"Please summarize the following in one sentence: Bees visit flowers to collect nectar and pollen. While they do so, pollen sticks to "
     "their bodies and is carried to other flowers. Many crops depend on this service.",
     "Bees carry pollen from flower to flower while gathering food, and many crops depend on it."},
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
    {"Can you suggest a healthy dinner that takes less than 30 minutes?",
     "Certainly! Here are three ideas:\n\n1. **Vegetable stir-fry**: Fry peppers, carrots and broccoli in a little oil, add soy sauce and "
     "ginger, and serve it with rice.\n2. **Lentil soup**: Simmer red lentils with onions, tomatoes and cumin for 20 minutes.\n3. "
     "**Baked salmon**: Bake a fillet with lemon and dill at 200 °C for about 15 minutes, with a green salad.\n\nAll of them are rich in "
     "fibre or protein and need only one or two pans. Enjoy your meal!"},
    {NULL,
     "\"You are late,\" said Miriam without looking up from the map. \"The tide turns at six, and it is a quarter past already.\"\n\n\"The "
     "bridge was closed,\" Tom answered. He put the lamp on the table, shook the rain from his coat and smiled. \"Besides, you can't sail "
     "in this fog. Nobody could!\"\n\nShe laughed then, and for a moment the room seemed warmer. Outside, somewhere beyond the breakwater, "
     "a bell rang twice... and then, very faintly, a third time.\n"},
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
    {"Hello!", "Hello! How can I help you today?"},
    {"Who are you and what can you do?",
     "I am an AI assistant. I can answer questions, explain ideas, help you write or edit texts, work through problems step by step and "
     "give "
     "suggestions. Tell me what you are working on."},
    {NULL,
     " The album was recorded in eleven days in the autumn of 1994 , with the producer Dana Whitlock , and released by a small label the "
     "following spring . It entered the chart at number 47 and stayed there for only three weeks , but it sold steadily for years , and in "
     "2003 a magazine placed it at number 12 in its list of the best debut albums . Critics noted the unusual instrumentation : two cellos "
     ", a banjo , and a drum kit without cymbals . The second single , \" Paper Lanterns \" , was used in a film and became the band 's "
     "best @-@ known song . In the quarter @-@ final on 8 July , the team won 3 – 1 ; the captain scored twice before half @-@ time . \n"},
    {"Explain in simple words why the sky is blue.",
     "Sunlight looks white, but it is made of all the colours of the rainbow. When it enters the air, tiny molecules scatter the short, "
     "blue "
     "waves much more than the long, red ones. That scattered blue light reaches our eyes from every direction, so the whole sky looks "
     "blue. "
     "At sunset the light has to travel a longer way; most of the blue is scattered out, and what remains looks orange and red."},
    {"List the planets of the solar system.", "1. Mercury\n2. Venus\n3. Earth\n4. Mars\n5. Jupiter\n6. Saturn\n7. Uranus\n8. Neptune"},
};

const calibration_sample* calibration_samples(size_t* count) {
  *count = sizeof samples / sizeof samples[0];
  return samples;
}
