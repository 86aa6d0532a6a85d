"""Small templates, one construct or two each, for tests/data/templates/cases.json. The reference says what each gives or that it fails."""

VARIABLES = {
    "n": 42,
    "f": 3.5,
    "yes": True,
    "nothing": None,
    "s": "Hello World",
    "u": "naïve Ωmega 🦊 ß",
    "empty": "",
    "pad": "  \t x y \n ",
    "nums": [3, 1, 2],
    "words": ["apple", "Banana", "cherry", "apple"],
    "mixed": [1, "two", None, 3.5, True, [1], {"k": "v"}],
    "d": {"b": 1, "a": {"c": [1, 2]}, "items": "shadow", "": 0},
    "people": [
        {"name": "Ada", "age": 36, "city": {"name": "London"}, "tags": ["x"]},
        {"name": "bob", "age": 25, "city": {"name": "Paris"}},
        {"name": "Cy", "age": 36, "city": {"name": "london"}},
    ],
    "html": "<b>&'\"",
    "lines": "one\n two\n\nthree\r\nfour\u2028five",
    "big": 9007199254740993,
    "tiny": 1e-07,
}

EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
2 ** 3 ** 2
-2 ** 2
-n|abs
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
7.5 // 2
-7.5 // 2
-7.5 % 2
7.5 % -2
1 / 2
4 / 2
1 / 3
10 / 4
2 ** -1
2 ** 0.5
0 ** 0
(-8) ** 2
1 // 0
1 % 0
1 / 0
1.0 / 0
9223372036854775807 - 1
big + 1
big / 3
1e3
1.5e-7
1e16
1e15
123456789012345680.0
0.1 + 0.2
1e22
1.0
-0.0
tiny
1_000 + 0x1f + 0b101 + 0o17
100 * 1.1
True + 1
true == 1
false + false
not true
not none
+true
-true
- n
1 < 2 < 3
1 < 3 < 2
1 == 1.0
1 == true
"1" == 1
n != 42
"a" < "b"
"a" < "B"
[1, 2] < [1, 3]
[1] < [1, 0]
(1, 2) == [1, 2]
(1, 2) == (1, 2)
[1, 2] == [1.0, 2]
{"a": 1} == {"a": 1.0}
{"a": 1, "b": 2} == {"b": 2, "a": 1}
none == none
none == false
undefinedname == othername
undefinedname == none
1 < "a"
none < 1
n in [1, 42]
n not in [1, 42]
"lo" in s
"" in s
1 in "1"
"b" in d
"zz" not in d
[1] in d
none in mixed
"x" in undefinedname
undefinedname in nums
1 in n
not 1 in nums
not n is defined
1 and 2
0 and 2
0 or "x"
"" or none
none or undefinedname
yes and nothing
1 or undefinedname.x
"a" if yes else "b"
"a" if nothing
"a" if nothing else "b" if nothing else "c"
("a" if nothing) is defined
"a" ~ 1 ~ none ~ true ~ 1.0
s ~ undefinedname ~ "!"
"a" "b" 'c'
"a" + "b" ~ "c"
"a" * 3
3 * "ab"
"a" * -1
"a" * true
[1] * 2
(1,) * 3
[1] + [2, 3]
(1,) + (2,)
[1] + (2,)
"a" + 1
1 + "a"
"a" - "b"
[1] - [1]
none + 1
d + d
undefinedname + 1
1 + undefinedname
-undefinedname
-s
+s
s.lower() + s|upper
nums
mixed
d
people[0]
(1,)
()
(1, "a", none)
[]
{}
{"a": [1, {"b": (1, 2)}]}
{1: "a", 2.5: "b", none: "c", true: "d", (1, 2): "e"}
{[1]: 2}
["it's", 'say "hi"', "both ' and \"", "back\\slash", "tab\t", "nl\n", "\x00\x7f\x1f", "é", "\u200b", "🦊", "\u00ad"]
[1.0, 1e100, 1e-5, 0.0001, 123456.789]
[true, false, none]
[undefinedname]
"\u00e9\x41\101\n|\q|\'"
'a\
b'
s[0]
s[-1]
s[100]
s["x"]
s[1:3]
s[::-1]
s[::2]
s[-3:]
s[:-3]
s[5:2]
s[10:0:-3]
s[::-2]
s[::0]
s["a":]
u[2]
u[6:8]
u[::-1]
u[-3:]
u|length
nums[0]
nums[-1]
nums[3]
nums[-4]
nums[1:]
nums[:1]
nums[::-1]
nums[10:]
nums[true]
nums["0"]
nums[1.0]
nums.0
nums.5
(1, 2, 3)[1:]
range(10)[2:8:2]
range(10)[::-1]|list
range(10)[-1]
d.b
d["b"]
d.a.c[1]
d.a.c.1
d.items
d["items"]
d.items()
d.missing
d.missing.x
d["missing"]["x"]
d[""]
d[nothing]
d[[1]]
nothing.x
nothing.x.y
nothing["x"]
n.x
undefinedname.x
undefinedname["x"]
undefinedname()
s()
n()
s.nosuch
s.nosuch()
d.get("b")
d.get("zz")
d.get("zz", "default")
d.get()
d.get("a", {}).get("c", [])[0]
d.keys()|list
d.values()|list
d.items()|list
d.keys()
d.values()
"b" in d.keys()
1 in d.values()
("b", 1) in d.items()
d.keys()|length
d.pop("b")
d.update({})
d.pop
nums.append(4)
nums.index(1)
nums.index(9)
nums.count(1)
nums.copy()
(1, 2, 2).count(2)
(1, 2).append(3)
d.copy()
d.__class__
s.__class__.__mro__
d["__class__"]
s.upper
s.upper is callable
s|upper is string
s.upper()
s.lower()
s.title()
s.capitalize()
s.swapcase()
u.upper()
u.title()
u.capitalize()
"ǆ ŉ ﬁ ΑΣ Σ ΑΣ. İ"|lower
"ǆ ŉ ﬁ ασ"|upper
"ǆ ŉ ﬁ they're o'neil x2y"|title
"they're o'neil (x) x2y-z".title()
"ǆabc".capitalize()
"HELLO"|capitalize
"ß ﬁ Σ".casefold()
pad.strip()
pad.lstrip()
pad.rstrip()
"xxhixx".strip("x")
"xyhiyx".strip("xy")
"xxhixx".lstrip("x")
"xxhixx".rstrip("x")
"éaé".strip("é")
"\u3000 a \u00a0".strip()
s.strip(none)
s.strip(1)
pad|trim
"xxhixx"|trim("x")
nothing|trim
n|trim
s.split()
pad.split()
"a,b,,c".split(",")
"a,b,,c".split(",", 1)
"a,b,,c".split(",", maxsplit=2)
"a b  c ".split(" ")
"a b  c".split(none, 1)
"  a b  c  ".split(maxsplit=1)
"a,b,,c".rsplit(",", 1)
"  a b  c  ".rsplit(none, 1)
"a b c".rsplit()
"".split()
"".split(",")
"abc".split("")
"a<br>b<br>c".split("<br>")[-1]
"a</think>b</think>c".split("</think>")[-1].lstrip("\n")
"a</think>b".split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
lines.splitlines()
lines.splitlines(true)
"a\n".splitlines()
"".splitlines()
s.startswith("Hell")
s.startswith("ello", 1)
s.startswith(("x", "H"))
s.startswith("")
s.endswith("World")
s.endswith(("a", "d"))
s.endswith("o", 0, 5)
s.startswith(1)
s.find("o")
s.find("o", 5)
s.find("zz")
s.rfind("o")
s.index("o")
s.index("zz")
u.find("🦊")
s.count("o")
s.count("l", 3)
"aaaa".count("aa")
"abc".count("")
s.replace("o", "0")
s.replace("o", "0", 1)
s.replace("", "-")
s.replace("zz", "y")
s.replace("o", 1)
s|replace("o", 0)
s|replace("l", "L", 2)
s|replace("", "-", 3)
", ".join(words)
", ".join(nums)
"-".join("abc")
"-".join({"x": 1, "y": 2})
s.partition(" ")
s.partition("zz")
"a.b.c".rpartition(".")
"abc".removeprefix("ab")
"abc".removesuffix("bc")
"abc".removesuffix("zz")
"7".zfill(3)
"-7".zfill(4)
"ab".center(7, "*")
"abc".center(6) ~ "|"
"ab".ljust(4) ~ "|"
"ab".rjust(4, ".")
"a\tb".expandtabs(4)
"abc".isalpha()
"ab1".isalpha()
"123".isdigit()
"²".isdigit()
"²".isdecimal()
"12a".isalnum()
" \t".isspace()
"".isspace()
"Abc Def".istitle()
"abc".islower()
"ABC1".isupper()
"abc".isascii()
"{} {}".format(1, "a")
"{0}{1}{0}".format("a", "b")
"{a} {b}".format(a=1, b=2)
"{:>5}|{:<5}|{:^5}|".format("a", "b", "c")
"{:05d} {:x} {:#x} {:b} {:o} {:,}".format(42, 255, 255, 5, 8, 1234567)
"{:.2f} {:e} {:g} {:%} {:.3}".format(3.14159, 12345.678, 0.0001, 0.25, "abcdef")
"{:+d} {: d} {:*^9}".format(5, 5, "mid")
"{!r} {!s}".format("a", "b")
"{0[1]} {1.x}".format([1, 2], {"x": 3})
"{{}}".format()
"{} {}".format(1)
"{0} {}".format(1, 2)
"{x}".format(1)
"}".format()
"{:d}".format("a")
"{:>{w}}".format("a", w=4)
"{:>8}|{:05}|{:+}|{!s:>6}|{:x}|{}".format(true, true, false, true, true, true)
"{:s}".format(true)
"%s and %s" % ("a", 1)
"%s" % "a"
"%s" % none
"%s" % [1, 2]
"%d%%" % 50
"%5d|%-5d|%05d|%+d" % (1, 2, 3, 4)
"%.2f %e %g" % (3.14159, 12345.678, 0.00001)
"%x %X %o %#x" % (255, 255, 8, 255)
"%r %5s %-5s|" % ("a", "b", "c")
"%.2s" % "abc"
"%(a)s %(b)d" % {"a": 1, "b": 2}
"%c%c" % (65, "B")
"%s" % ("a", "b")
"%s %s" % "a"
"%d" % "a"
"%z" % 1
"%s" % undefinedname
"a" % 1
"%s %s"|format("a", 1)
"%(x)s"|format(x=2)
"%.3f"|format(2)
n is defined
undefinedname is defined
undefinedname is undefined
undefinedname is not defined
d.b is defined
d.zz is defined
d.zz.y is defined
nothing is none
n is not none
n is number
f is number
yes is number
s is number
n is integer
yes is integer
f is float
n is float
yes is boolean
n is boolean
yes is true
yes is false
1 is true
s is string
n is string
d is mapping
nums is mapping
people[0] is mapping
nums is sequence
s is sequence
d is sequence
n is sequence
(1, 2) is sequence
range(3) is sequence
nums is iterable
s is iterable
n is iterable
nothing is iterable
undefinedname is iterable
undefinedname is sequence
undefinedname is string
undefinedname is callable
nothing is string
range is callable
n is callable
n is odd
n is even
7 is odd
7 is divisibleby 7
7 is divisibleby(2)
7 is divisibleby 0
s is odd
"abc" is lower
"ABC" is upper
"Abc" is lower
1 is eq 1
1 is equalto(1)
1 is ne 2
1 is sameas 1
yes is sameas true
s is sameas s
none is sameas none
1 is lt 2
2 is gt 1
2 is ge 2
1 is lessthan 0
3 is greaterthan 2
1 is in [1, 2]
"a" is in "abc"
1 is not in [1, 2]
"upper" is filter
"nosuch" is filter
"odd" is test
"nosuch" is test
s is escaped
s|safe is escaped
n is defined and n is odd
n is defined or zz
n is nosuchtest
n|nosuchfilter
n is defined is defined
s|upper
n|upper
nothing|lower
undefinedname|upper
s|length
nums|length
d|length
undefinedname|length
n|length
nothing|length
range(5)|length
nums|count
undefinedname|default("x")
undefinedname|default
nothing|default("x")
nothing|default("x", true)
empty|default("x", boolean=true)
empty|d("x")
d.zz|default(none)
d.zz.y|default("x")
nothing|d(1, true) + 1
nums|first
[]|first
nums|last
[]|last
s|first
s|last
d|first
d|last
undefinedname|first
undefinedname|last
n|first
nums|select|last
nums|list
s|list
u|list
d|list
undefinedname|list
n|list
range(3)|list
nums|join
nums|join(", ")
people|join(", ", attribute="name")
words|join(d=" / ")
s|join("-")
d|join(",")
mixed|join("|")
undefinedname|join(",")
n|join
nums|sort
words|sort
words|sort(case_sensitive=true)
words|sort(reverse=true)
people|sort(attribute="age")|map(attribute="name")|list
people|sort(attribute="age,name", reverse=true)|map(attribute="name")|list
people|sort(attribute="city.name")|map(attribute="name")|join(",")
mixed|sort
[3, 1.5, true, 2]|sort
[[2, 1], [1, 2], [1, 1]]|sort
nums|reverse
nums|reverse|list
s|reverse
u|reverse
d|reverse|list
n|reverse
nums|unique|list
words|unique|list
["a", "A", "b"]|unique|list
["a", "A"]|unique(case_sensitive=true)|list
people|unique(attribute="age")|map(attribute="name")|list
[[1], [1]]|unique|list
nums|sum
people|sum(attribute="age")
nums|sum(start=10)
[]|sum
words|sum
[[1], [2]]|sum(start=[])
[0.1, 0.2]|sum
nums|min
nums|max
words|min
words|max
words|max(case_sensitive=true)
people|max(attribute="age")
[]|min
[1, "a"]|max
nums|map("string")|list
words|map("upper")|join(",")
words|map("replace", "a", "A")|list
words|map("length")|list
people|map(attribute="name")|list
people|map(attribute="city.name")|list
people|map(attribute="tags")|list
people|map(attribute="tags", default="none")|list
people|map(attribute="tags.0", default="-")|join(",")
[[1, 2], [3, 4]]|map(attribute=1)|list
[[1, 2], [3, 4]]|map("first")|list
[[1, 2], [3, 4]]|map("join", "-")|list
nums|map("nosuch")|list
nums|map
nums|map|list
undefinedname|map("upper")|list
nums|select|list
[0, 1, "", "a", none]|select|list
nums|select("odd")|list
nums|select("gt", 1)|list
nums|select(">", 1)|list
nums|select("divisibleby", 2)|list
nums|reject("odd")|list
nums|reject("equalto", 1)|list
nums|select("nosuch")|list
nothing|select|list
n|select|list
people|selectattr("age", "equalto", 36)|map(attribute="name")|list
people|selectattr("age", "==", 25)|map(attribute="name")|list
people|selectattr("tags")|map(attribute="name")|list
people|selectattr("tags", "defined")|list|length
people|selectattr("tags", "undefined")|list|length
people|rejectattr("tags", "defined")|map(attribute="name")|list
people|selectattr("city.name", "eq", "Paris")|map(attribute="name")|first
people|selectattr("name", "in", ["Ada", "Cy"])|map(attribute="age")|list
people|selectattr|list
people|selectattr("age", "lt", "x")|list
(people|selectattr("age", "equalto", 99)|list)|length
"yes" if people|selectattr("age", "equalto", 99) else "no"
"yes" if people|selectattr("age", "equalto", 99)|list else "no"
(people|selectattr("age", "equalto", 99))|length
people|selectattr("age", "equalto", 99)|first
(people|map(attribute="name")|list)[1:]
people|map(attribute="name")[0]
people|groupby("age")|list|length
people|groupby("age")|map(attribute="grouper")|list
people|groupby("age")|map("last")|map("length")|list
people|groupby("city.name")|map(attribute=0)|list
people|groupby("city.name", case_sensitive=true)|map(attribute=0)|list
people|groupby("tags", default=[])|map("first")|list
d|dictsort
{"b": 1, "A": 2, "c": 0}|dictsort
{"b": 1, "A": 2, "c": 0}|dictsort(true)
{"b": 1, "A": 2, "c": 0}|dictsort(by="value")
{"b": 1, "A": 2}|dictsort(reverse=true)
{"b": 1, "A": 2}|dictsort(false, "nosuch")
nums|dictsort
d|items|list
{"a": 1}|items|list
undefinedname|items|list
nums|items|list
nums|batch(2)|list
[1, 2, 3, 4, 5]|batch(2, 0)|list
[1, 2, 3, 4, 5]|slice(2)|list
[1, 2, 3, 4, 5]|slice(3, "x")|list
"42"|int
"42.7"|int
" 42 "|int
"-7"|int
"0x1f"|int(base=16)
"1010"|int(0, 2)
"0b11"|int(base=0)
"z"|int
"z"|int(default=-1)
""|int
3.9|int
-3.9|int
true|int
none|int
nums|int
undefinedname|int
"1_000"|int
"1e3"|int
"inf"|int
"3.5"|float
"abc"|float
"abc"|float(1.5)
"1e400"|float
" 2 "|float
"nan"|float
none|float
3|float
42.55|round
42.55|round(1)
42.55|round(1, "floor")
42.51|round(1, "ceil")
2.5|round
3.5|round
2.675|round(2)
-2.5|round
1234.5|round(-2)
42|round
1250|round(-2)
1350|round(-2)
42|round(0, "ceil")
3.14159|round(precision=3)
s|round
1.5|round(0, "nosuch")
-5|abs
-5.5|abs
s|abs
n|string
f|string
nums|string
nothing|string
yes|string
html|e
html|escape
html|safe
html|safe|e
html|forceescape
n|e
("<b>"|safe) + "<i>"
"<i>" + ("<b>"|safe)
("<b>"|safe) ~ "<i>"
("<b>"|safe) % 1
("%s<b>"|safe) % "<i>"
("<B>"|safe|lower) + "<"
("<a>"|e) + "<"
["<b>"|safe]
("a,b"|safe).split(",")
html|tojson
html|tojson|safe
s|wordcount
u|wordcount
"a-b c_d 1"|wordcount
"a b/c?é&"|urlencode
{"a b": "c/d", "x": 1}|urlencode
[("a", 1), ("b", "é")]|urlencode
n|urlencode
"one two three"|truncate(8)
"one two three four"|truncate(8)
"one two three four"|truncate(8, true)
"one two three four"|truncate(10, false, "..", 0)
"one two three"|truncate(2)
"ab"|center(6) ~ "|"
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(width=3, blank=true)
lines|indent("> ")
lines|indent("> ", first=true, blank=true)
"a\n"|indent
""|indent(2, true)
n|indent
nothing|indent
"hello world-foo (bar) [baz]"|title
"x"|attr("upper") is callable
d|attr("b")
nums|tojson
d|tojson
mixed|tojson
people|tojson(indent=2)
d|tojson(indent=4)
{}|tojson(indent=2)
[]|tojson(indent=2)
[[], {}]|tojson(indent=2)
[1, [2]]|tojson(indent=0)
[1, [2]]|tojson(indent="--")
{"b": 1, "a": {"d": 1, "c": 2}}|tojson(sort_keys=true)
{"b": [1, 2], "a": 1}|tojson(separators=(",", ":"))
{"b": [1, 2]}|tojson(indent=1, separators=(",", ": "))
u|tojson
u|tojson(ensure_ascii=true)
"\u007f\u0080\u2028 \b\f\n\r\t\"\\/ \x01"|tojson
"\u007f\u0080\u2028"|tojson(ensure_ascii=true)
none|tojson
true|tojson
1.0|tojson
1e100|tojson
1e-7|tojson
("inf"|float)|tojson
("nan"|float)|tojson
(1, 2)|tojson
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
{(1, 2): 3}|tojson
undefinedname|tojson
range(3)|tojson
(nums|map("string"))|tojson
nums|tojson(nosuch=1)
nums|tojson(true, 2)
namespace(a=1)|tojson
range(5)
range(1, 10, 3)|list
range(5, 0, -2)|list
range(0)|list
range(3)|join(",")
range(1, 2)
range(0, 10, 2)
range(100001)
range(2, 3, 0)
range("a")
range()
3 in range(5)
range(3) == range(0, 3)
dict(a=1, b=2)
dict({"a": 1}, b=2)
dict([("a", 1), ("b", 2)])
dict(1)
namespace(a=1).a
namespace(a=1)
namespace(_a=1)
namespace({"a": 1}).a
namespace(a=1)["a"]
namespace(a=1).zz
cycler("a", "b").current
cycler()
joiner("|")()
strftime_now("%Y-%m-%d")
strftime_now("%d %b %Y %H:%M:%S %% %A %B %j")
strftime_now("%-d %f|%z|%Z|%y")
strftime_now(1)
raise_exception("stop: " ~ n)
raise_exception("é <x>")
raise_exception()
bos_token ~ eos_token
pad_token
messages[0].role
messages|length
tools
add_generation_prompt
documents
loop
s|upper|lower|title
(s|upper)[0]
s|upper[0]
-1|abs
(-1)|abs
2 * n|string
not s|length > 3
"a" in s|lower
n == 42 and s == "Hello World" or false
[x for x in nums]
nums[0,1]
lambda x: x
n is
n |
a b
(1
1)
[1
{"a" 1}
"abc
'a\
{{ n }}
n.
nums[
nums[]
d.1x
1..2
x = 1
@
$
!n
n ?? 1
n && 1
not
and 1
f(1, 2
range(1 2)
dict(a=1, 2)
dict(**{"a": 1}, b=2)
range(*[1, 4])|list
dict(**{"a": 1})
dict(a=1, a=2)
dict(a=1, **{"a": 2})
"{}{}".format(*["a", "b"])
""" 

STATEMENTS = [
    "",
    "\n",
    "a\n",
    "a\n\n",
    "a\r\nb\rc\n",
    "{% if yes %}a{% endif %}",
    "{% if nothing %}a{% else %}b{% endif %}",
    "{% if nothing %}a{% elif n == 42 %}b{% elif yes %}c{% else %}d{% endif %}",
    "{% if nothing %}a{% elif empty %}b{% endif %}|",
    "{% if 1, 2 %}tuple{% endif %}",
    "{% if yes: %}colon{% endif %}",
    "{% for x in nums %}{{ x }},{% endfor %}",
    "{% for x in nums %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}",
    "{% for x in nums %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}",
    "{% for x in nums %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in nums %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in nums %}{{ loop.cycle() }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{% endfor %}",
    "{% for x in nums %}{{ loop.depth }}{{ loop.depth0 }}{{ loop }}{% endfor %}",
    "{% for x in nums %}{{ loop|length }}{{ loop.nosuch }}{% endfor %}",
    "{% for x in nums %}{{ loop['index'] }}{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}",
    "{% for x in nums %}a{% else %}none{% endfor %}",
    "{% for x in undefinedname %}a{% else %}none{% endfor %}",
    "{% for x in nothing %}a{% else %}none{% endfor %}",
    "{% for x in n %}a{% endfor %}",
    "{% for c in u %}[{{ c }}]{% endfor %}",
    "{% for k in d %}{{ k }};{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|items %}{{ loop.index }}/{{ loop.length }} {{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3)), (4, (5, 6))] %}{{ a }}{{ b }}{{ c }};{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
    "{% for a, b in [(1,)] %}{% endfor %}",
    "{% for a, b in ['xy', 'zw'] %}{{ b }}{{ a }}{% endfor %}",
    "{% for a, b in nums %}{% endfor %}",
    "{% for x in nums if x > 1 %}{{ x }}:{{ loop.index }}/{{ loop.length }}{{ loop.last }};{% endfor %}",
    "{% for x in nums if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nums if loop %}{{ x }}{% endfor %}",
    "{% for p in people if p.age == 36 and p.tags is defined %}{{ p.name }}{% endfor %}",
    "{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1] %}{% break %}{% else %}else{% endfor %}",
    "{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}else{% endfor %}",
    "{% for x in [1] %}{% continue %}{% else %}else{% endfor %}",
    "{% for x in [1, 2] %}{% for y in [1, 2] %}{% if y == 2 %}{% break %}{% endif %}{{ x }}{{ y }};{% endfor %}{% endfor %}",
    "{% for x in [1, 2] %}{% for y in [] %}{% else %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}after{% endfor %}",
    "{% for x in [1, 2] %}{% for y in nums %}{{ loop.index }}{% endfor %}:{{ loop.index }};{% endfor %}",
    "{% for x in [1, 2] %}{% set outer = loop %}{% for y in [1, 2] %}{{ outer.index }}{{ loop.index }};{% endfor %}{% endfor %}",
    "{% break %}",
    "{% if yes %}{% continue %}{% endif %}",
    "{% for x in nums %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% set x = 1 %}{% for i in nums %}{% set x = i %}{{ x }}{% endfor %}|{{ x }}",
    "{% set x = 1 %}{% for i in nums %}{{ x }}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}",
    "{% set ns = namespace(x=0) %}{% for i in nums %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns }}",
    "{% set ns = namespace(a=1) %}{% set ns._b = 1 %}",
    "{% set d.b = 2 %}",
    "{% set zz.b = 2 %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [1, 2] %}{{ b }}",
    "{% set (a, b) = (1, 2) %}{{ a }}",
    "{% set a, b = 1 %}",
    "{% set a, b = 1, 2, 3 %}",
    "{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}block {{ n }}{% endset %}[{{ x }}]{{ x|length }}",
    "{% set x | upper | replace('B', '-') %}block{% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
    "{% set true = 1 %}",
    "{% set none = 1 %}",
    "{% set 1 = 1 %}",
    "{% set x.y.z = 1 %}",
    "{% set n = n + 1 %}{{ n }}",
    "{% if yes %}{% set x = 5 %}{% endif %}{{ x }}",
    "{% if nothing %}{% set x = 5 %}{% endif %}{{ x }}|{{ x is defined }}",
    "{% if nothing %}{% set n = 5 %}{% endif %}{{ n }}",
    "{{ n }}{% set n = 1 %}{{ n }}",
    "{% for i in [1] %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}",
    "{% for i in [1] %}{{ q }}{% set q = 2 %}{{ q }}{% endfor %}{{ q }}",
    "{% set s %}{{ s }}{% endset %}[{{ s }}]",
    "{% for i in [1, 2] %}{% if i == 1 %}{% set v = i %}{% endif %}[{{ v }}]{% endfor %}",
    "{% for i in [1, 2] %}{% if i == 1 %}{% set n = i %}{% endif %}[{{ n }}]{% endfor %}{{ n }}",
    "{% for loop in nums %}{% endfor %}",
    "{% for x in nums %}{% set loop = 1 %}{% endfor %}",
    "{% set loop = 1 %}{{ loop }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with %}{% set a = 3 %}{{ a }}{% endwith %}{{ a }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }}",
    "{% macro m(a, b=a) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, z=2) }}",
    "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, z=4) }}",
    "{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(a=1, z=4) }}{{ m(1, a=2) }}",
    "{% macro m(a, a2=1, b) %}{% endmacro %}",
    "{% macro m() %}{{ n }}{{ q }}{% endmacro %}{% set q = 7 %}{{ m() }}",
    "{% macro m() %}{% set n = 1 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro m() %}x{% endmacro %}{{ m.name }}{{ m is callable }}{{ m() ~ m() }}{{ m()|upper }}{{ m }}",
    "{{ m() }}{% macro m() %}x{% endmacro %}",
    "{% for i in nums %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% for i in nums %}{{ m(i) }}{% endfor %}{% macro m(x) %}{{ x }}{% endmacro %}",
    "{% macro m(a) %}<{{ caller() }}>{{ a }}{% endmacro %}{% call m(1) %}body {{ n }}{% endcall %}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=0) m() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}body{% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m(caller) %}{{ caller() }}{% endmacro %}",
    "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
    "{% call range(3) %}{% endcall %}",
    "{% call n %}{% endcall %}",
    "{% filter upper %}abc {{ s }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}abca{% endfilter %}",
    "{% filter nosuch %}a{% endfilter %}",
    "{% filter indent(2) %}a\nb{% endfilter %}",
    "{% generation %}a{{ n }}{% endgeneration %}b",
    "{% for x in nums %}{% generation %}{{ x }}{% set y = x %}{% endgeneration %}{{ y }}{% endfor %}",
    "{%- generation -%} a {%- endgeneration -%} b",
    "{% raw %}{{ n }}{% if %}{% endraw %}",
    "{% raw -%}  {{ n }} {%- endraw %}|",
    "a {%- raw %} b {% endraw -%} c",
    "{% raw %}\n x\n {% endraw %}\n y",
    "{% raw %}a",
    "a{# comment #}b",
    "a\n  {# comment #}\nb",
    "a {#- comment -#} b",
    "a {# {{ n }} {% if %} #} b",
    "a{# comment",
    "a{#",
    "a {% raw %}",
    "{#-#}",
    "a\n  {% if yes %}\n  b\n  {% endif %}\nc",
    "a\n  {%+ if yes %}\n  b\n  {%+ endif %}\nc",
    "a\n  {%- if yes -%}\n  b\n  {%- endif -%}\nc",
    "a  {% if yes %}  b  {% endif %}  c",
    "a\n  {% if yes +%}\n  b\n  {% endif +%}\nc",
    "a\n  {{ n }}\n  b",
    "a\n  {{- n -}}\n  b",
    "  {{ n }}  ",
    "  {% if yes %}  x  {% endif %}  ",
    "\n\n  {% set x = 1 %}\n\n{{ x }}",
    "{% if yes %}\n\n\na{% endif %}",
    "{{ n }}\n{{ n }}\n",
    "{{ '\n' }}",
    "{%if yes%}a{%endif%}",
    "{%-if yes-%} a {%-endif-%} ",
    "{{n}}{{-n}}{{n-}} {{+n}}",
    "{{ '{{ x }}' }}{{ '%}' }}{{ '#}' }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}{{ {}}}",
    "{{ {'a': 1} }}",
    "{ { % # } a {b} {",
    "{{",
    "{{ n",
    "{% if yes %}a",
    "{% endif %}",
    "{% if yes %}{% endfor %}",
    "{% for x in nums %}{% endif %}",
    "{% else %}",
    "{% nosuch %}",
    "{% if %}a{% endif %}",
    "{% for x nums %}{% endfor %}",
    "{% for in nums %}{% endfor %}",
    "{% set %}",
    "{% set x = %}",
    "{% macro %}{% endmacro %}",
    "{% macro m %}{% endmacro %}",
    "{% 1 %}",
    "{% %}",
    "{{ }}",
    "{% print n %}{% print n, s %}",
    "{% if nothing %}{{ n|nosuch }}{% endif %}ok",
    "{% if yes %}{{ n|nosuch }}{% endif %}",
    "{% if nothing %}{% for x in nums %}{{ n|nosuch }}{% endfor %}{% endif %}ok",
    "{{ (n|nosuch) if nothing else 'ok' }}",
    "{{ (n is nosuch) if nothing else 'ok' }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}",
    "{% set j = joiner() %}{% for x in nums %}{{ j() }}{{ x }}{% endfor %}",
    "{% set m = people|map(attribute='name') %}{% for x in m %}{{ x }}{% endfor %}|{% for x in m %}{{ x }}{% endfor %}",
    "{% set m = nums|select %}{{ m|first }}{{ m|first }}{{ m|list }}",
    "{% set ns = namespace(k=1) %}{% for x in nums if x > ns.k %}{{ x }}{% set ns.k = x %}{% endfor %}",
    "{% for x in nums|map('string') %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ loop.last }};{% endfor %}",
    "{% for x in nums|reverse %}{{ x }}{{ loop.length }}{% endfor %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('order') }}{% endif %}{{ m['content'] }}{% endfor %}",
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}",
    "{% if messages[0].role != 'system' %}{{ raise_exception('no system') }}{% endif %}",
    "{% set x = {'a': 1} %}{% set x = dict(x, b=2) %}{{ x }}",
    "{% set l = [] %}{% for x in nums %}{% set l = l + [x] %}{% endfor %}{{ l }}",
    "{% set ns = namespace(l=[]) %}{% for x in nums %}{% set ns.l = ns.l + [x * 2] %}{% endfor %}{{ ns.l }}",
    "{{ nums }}{{ nums[0] if nums else 'none' }}{{ 'none' if not nums }}",
    "{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}",
    "{% for k, v in {'a': 1} %}{{ k }}{% endfor %}",
    "{% include 'x' %}",
    "{% import 'x' as y %}",
    "{% extends 'x' %}",
    "{% for x in nums %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% set x = none %}{{ x.a is defined }}{{ x is none }}",
    "{%- set tool_list = people | map(attribute='name') | list -%}\n{{ tool_list | join(', ') }}",
    "{% for p in people %}{% for t in p.tags %}{{ p.name }}{{ t }}{% endfor %}{% endfor %}",
    "{% if 'content' in messages[0] and messages[0].content is string %}str{% endif %}",
    "{{ 'a' if true }}{{ ('a' if false) ~ 'b' }}",
    "{{ ('a' if false).x }}",
    "{{ messages[-1]['content'][:4] + '...' }}",
]


def expressions():
    lines = EXPRESSIONS.strip("\n").split("\n")
    result, index = [], 0
    while index < len(lines):
        line = lines[index]
        while line.endswith("\\") and index + 1 < len(lines):  # a line end inside a string
            index += 1
            line += "\n" + lines[index]
        result.append(line.rstrip(" ") if not line.endswith("' ") else line)
        index += 1
    return ["{{ " + line + " }}" for line in result]
