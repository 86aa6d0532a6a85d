"""`genai report`: the page in a headless Chromium, against the record it was made of, and against the logits that `genai logits` gives."""

import html.parser
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GENAI = Path(os.environ.get("GENAI_BUILD_DIR", ROOT / "build")) / "genai"
LLAMA = ROOT / "tests/data/checkpoints/llama"
QNN = os.environ.get("GENAI_QNN_DIR", "")
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.skipif(not GENAI.exists(), reason="genai is not built"),
    pytest.mark.skipif(not os.path.exists(os.path.join(QNN, "libQnnHtp.so")), reason="Qualcomm's libraries are absent (GENAI_QNN_DIR)"),
]
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")

RUN = ["--soc", "SM8650", "--context", "32", "--prefill-ar", "8", "--max-new-tokens", "4", "--calibration-samples", "1"]
TEXT = "1,17,250,3,99,42,42,7,311,5,64,128"
EVIL = "<script>document.title='owned'</script>&\"'"


def genai(*arguments, cwd=None):
    return subprocess.run([GENAI, *map(str, arguments)], capture_output=True, text=True, timeout=600, cwd=cwd)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a model whose folder has a hostile name, and the report about it."""
    folder = tmp_path_factory.mktemp("run")
    model = folder / EVIL.replace("/", "_")
    shutil.copytree(LLAMA, model)
    done = genai("run", model, *RUN, "--ids", "1,2,3,4,5", "--ids", "7,8", "--artifact-dir", folder / "out", "--json")
    assert done.returncode == 0, done.stderr
    reported = genai("report", folder / "out", "--ids", TEXT, "--json")
    assert reported.returncode == 0, reported.stderr
    return {"folder": folder, "model": model, "facts": json.loads(done.stdout), "report": json.loads(reported.stdout)}


@pytest.fixture(scope="module")
def page(run):
    return Path(run["report"]["page"])


class Tables(html.parser.HTMLParser):
    """Captions to rows of cells, ids, tags and attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tables, self.tags, self.attributes, self.rows, self.cell, self.caption = {}, [], [], None, None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag == "table":
            self.rows = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th", "caption"):
            self.cell = ""

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        if tag == "caption":
            self.caption, self.cell = self.cell, None
        elif tag in ("td", "th"):
            self.rows[-1].append(self.cell)
            self.cell = None
        elif tag == "table":
            self.tables.setdefault(self.caption, self.rows)

    def pairs(self, caption):
        return {row[0]: row[1] for row in self.tables[caption][1:]}


def chromium(path, tmp_path, *arguments):
    """What the browser makes of a file, its console, and the addresses that it asked the network for."""
    log = tmp_path / "net.json"
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-extensions"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-client-side-phishing-detection"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={log}", "--enable-logging=stderr", *arguments, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    text = log.read_text()
    try:
        events = json.loads(text)["events"]
    except json.JSONDecodeError:  # the browser ended before it closed the log
        events = json.loads(text.rstrip().rstrip(",") + "]}")["events"]
    asked = {event["params"]["url"] for event in events if "url" in event.get("params", {})}
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, console, asked


@needs_chromium
def test_the_browser_loads_the_page_and_fetches_nothing(page, tmp_path):
    dom, console, asked = chromium(page, tmp_path, "--dump-dom")
    assert "</html>" in dom and console == []
    control = tmp_path / "control.html"
    control.write_text('<!DOCTYPE html><img src="http://fetched.invalid/x.png"><script>console.error("seen")</script>')
    _, noise, control_asked = chromium(control, tmp_path, "--dump-dom")
    assert any("seen" in line for line in noise)  # the console is heard, and a fetch would be seen
    assert "http://fetched.invalid/x.png" in control_asked
    own = re.compile(r"https?://([\w.-]+\.)?(google|googleapis|gvt1|gstatic)\.com/")  # the browser's own housekeeping
    assert [url for url in asked if not url.startswith(("file:", "data:", "chrome")) and not own.match(url)] == []


@needs_chromium
def test_hostile_names_stay_text(run, page, tmp_path):
    dom, _, _ = chromium(page, tmp_path, "--dump-dom")
    seen = Tables(dom)
    assert "script" not in seen.tags
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL).group(1)
    assert "owned" in title and "&lt;" in title  # the name, escaped; a script would have replaced it
    assert Tables(dom).pairs("What was run")["model"] == str(run["model"])


@needs_chromium
def test_the_page_is_drawn_in_light_and_dark(page, tmp_path):
    pictures = []
    for i, arguments in enumerate(([], ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"])):
        picture = tmp_path / f"{i}.png"
        chromium(page, tmp_path, "--window-size=800,600", f"--screenshot={picture}", *arguments)
        pictures.append(picture.read_bytes())
    assert all(picture.startswith(b"\x89PNG") and len(picture) > 10000 for picture in pictures)
    assert pictures[0] != pictures[1]


@needs_chromium
def test_the_numbers_in_the_browser_are_the_records(run, page, tmp_path):
    dom, _, _ = chromium(page, tmp_path, "--dump-dom")
    check_numbers(run, Tables(dom))


def test_the_numbers_are_the_records(run, page):
    check_numbers(run, Tables(page.read_text()))


def check_numbers(run, seen):
    facts, report = run["facts"], run["report"]["report"]
    assert json.loads(next((run["folder"] / "out").glob("*.run.json")).read_text()) == facts
    summary = seen.pairs("What was run")
    assert summary["SoC's marketing name"] == "Snapdragon 8 Gen 3" and summary["QNN's SoC id"] == "57"
    assert summary["total time"] == f"{facts['seconds']:.3f} s"
    assert f"{facts['peak_memory_bytes']:,} bytes" in summary["peak memory"]
    assert summary["QNN libraries"].startswith("v2.")
    stages = seen.tables["Stages in the order they ran"][1:]
    assert [(row[0], row[1], row[2]) for row in stages] == [(s["stage"], s["state"], f"{s['seconds']:.3f}") for s in facts["stages"]]
    files = {row[0]: row[2] for row in seen.tables["What the run wrote"][1:]}
    assert all(files[a["path"]] == f"{Path(a['path']).stat().st_size:,}" for a in facts["artifacts"])
    for name, value in facts["statistics"].items():
        assert float(seen.pairs("What compilation took")[name]) == pytest.approx(value, rel=1e-8)
    operators = {row[0]: row[1:] for row in seen.tables["Operators by kind"][1:]}
    for g, graph in enumerate(report["graphs"]):
        assert all(operators[kind][g] == str(count) for kind, count in graph["operators"].items())
    assert operators["Softmax"] == ["2", "2"] and operators["MatMul"] == ["4", "4"]  # two layers
    weights = {row[0]: row for row in seen.tables["Weights and tables of one graph (scales not counted)"][1:]}
    assert weights["8 bits, a scale per channel"][2] == f"{report['graphs'][0]['weights'][0]['elements']:,}"
    layers = seen.tables["Signal to quantization noise, by layer"][1:]
    quality = report["quality"]
    keys = ("attention_db", "feed_forward_db", "output_db")
    assert [row[1:4] for row in layers[:-1]] == [[f"{layer[key]:.2f}" for key in keys] for layer in quality["layers"]]
    assert layers[-1][0] == "logits" and layers[-1][3] == f"{quality['logits_db']:.2f}"
    record = seen.pairs("Provenance: what the artifact says it was made from and for")
    assert record["variant"] == "device" and "16a8w" in record["recipe"]
    assert seen.pairs("Options that were given; others had their defaults")["prefill_ar"] == "8"
    assert seen.pairs("Context binary and delegate")["SoC it records"] == "57"


def test_it_is_accessible(page):
    text = page.read_text()
    seen = Tables(text)
    assert text.startswith("<!DOCTYPE html>\n<html lang=\"en\">") and "<title>" in text and seen.tags.count("h1") == 1
    assert seen.tags.count("table") == seen.tags.count("caption") == seen.tags.count("thead") == len(re.findall("<table", text))
    assert len(seen.tables) >= 10
    assert {value for key, value in seen.attributes if key == "scope"} == {"col", "row"}
    links = {value[1:] for key, value in seen.attributes if key == "href" and value.startswith("#")}
    assert links and links <= {value for key, value in seen.attributes if key == "id"}
    assert "prefers-color-scheme:dark" in text
    for key, value in seen.attributes:  # nothing that could be fetched
        assert key not in ("src", "srcset", "data", "action") and not (key == "href" and not value.startswith(("#", "data:,")))
    assert "url(" not in text and "@import" not in text


def test_quality_of_the_logits_agrees_with_genai_logits(run, tmp_path):
    """numpy over the logits that another command writes; float ones of the checkpoint itself, without the rotations that the graph has."""
    numpy = pytest.importorskip("numpy")
    rows = {}
    for on in ("float", "simulated"):
        out = tmp_path / on
        done = genai("logits", run["model"], "--ids", TEXT, "--on", on, "--out", out, "--context", 32, "--prefill-ar", 8, "--set", "calibration_samples=1")
        assert done.returncode == 0, done.stderr
        rows[on] = numpy.fromfile(out, numpy.float32).astype(float).reshape(len(TEXT.split(",")), -1)
    noise = rows["float"] - rows["simulated"]
    decibels = 10 * numpy.log10((rows["float"] ** 2).sum() / (noise**2).sum())
    quality = run["report"]["report"]["quality"]
    assert quality["logits_db"] == pytest.approx(decibels, abs=0.01)
    assert quality["same_choice"] == (rows["float"].argmax(1) == rows["simulated"].argmax(1)).sum()
    assert quality["tokens"] == len(rows["float"])


def test_what_is_gone_is_said_on_the_page(run, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(run["folder"] / "out", moved)
    record = next(moved.glob("*.run.json"))
    facts = json.loads(record.read_text())
    facts["model"] = facts["model_path"] = str(tmp_path / "nowhere")
    for artifact in facts["artifacts"]:
        artifact["path"] = "/nowhere/" + Path(artifact["path"]).name  # found beside the record
    record.write_text(json.dumps(facts))
    done = genai("report", record, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.html").read_text()
    assert "is not there any more" in text and "Provenance" in text
    for artifact in moved.glob("*.pte"):
        artifact.unlink()
    done = genai("report", record, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert "The artifact cannot be inspected" in (tmp_path / "page.html").read_text()


def test_what_cannot_be_measured_any_more_is_said_on_the_page(run, tmp_path):
    facts = dict(run["facts"], options=dict(run["facts"]["options"], recipe=str(tmp_path / "gone.json")))
    (tmp_path / "x.run.json").write_text(json.dumps(facts))
    done = genai("report", tmp_path / "x.run.json", "--ids", TEXT)
    assert done.returncode == 0, done.stderr
    assert "without graphs and quality" in done.stderr and "gone.json" in done.stderr
    text = (tmp_path / "x.report.html").read_text()
    assert "Not measured" in text and "gone.json" in text and "Provenance" in text


def test_a_bundle_is_an_artifact_too(run, tmp_path):
    bundle = tmp_path / "x.SM8650.genie"
    bundle.mkdir()
    (tmp_path / "x.SM8650.run.json").write_text(json.dumps(run["facts"]))
    for path in (bundle, f"{bundle}/", bundle / "genie_config.json", tmp_path / "x.SM8650.sim.genie"):
        done = genai("report", path, "--no-quality")
        assert done.returncode == 0, done.stderr
        (tmp_path / "x.SM8650.report.html").unlink()


def test_what_is_measured_is_calibrated_as_the_run_was(run, tmp_path):
    """The built-in set has more than the one sample that the run took."""
    lines = [genai("logits", run["model"], "--ids", TEXT, "--on", "simulated", "--out", tmp_path / "x.f32", *options).stderr
             for options in (["--set", "calibration_samples=1"], ["--set", "calibration_samples=2"])]
    tokens = [int(re.search(r"calibrated on (\d+) tokens", line).group(1)) for line in lines]
    assert tokens[1] == 2 * tokens[0]


def test_a_float_run_and_no_quality(run, tmp_path):
    done = genai("run", LLAMA, *RUN, "--until", "compilation", "--skip", "quantization", "--artifact-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    done = genai("report", tmp_path / "llama.SM8650.pte", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["report"]
    assert "did not quantize" in report["not_measured"] and "quality" not in report
    assert {w["stored_as"] for w in report["graphs"][0]["weights"]} == {"32-bit float"}
    done = genai("report", run["folder"] / "out", "--no-quality", "--out", tmp_path / "x.html", "--json")
    assert "--no-quality" in json.loads(done.stdout)["report"]["not_measured"]


@pytest.mark.parametrize(
    "content, needle",
    [(None, "cannot be read"), ("", "cannot be read"), ("[1, 2]", "not the record of a run"), ('{"model": "x"}', "not the record of a run")],
)
def test_what_is_no_record_is_refused(tmp_path, content, needle):
    record = tmp_path / "x.run.json"
    if content is not None:
        record.write_text(content)
    done = genai("report", record)
    assert done.returncode == 1 and needle in done.stderr and "x.run.json" in done.stderr
    assert list(tmp_path.glob("*.html")) == []


def test_a_folder_without_or_with_several_records(run, tmp_path):
    done = genai("report", tmp_path)
    assert done.returncode == 1 and "has no record of a run" in done.stderr
    for name in ("a.run.json", "b.run.json"):
        (tmp_path / name).write_text("{}")
    done = genai("report", tmp_path)
    assert done.returncode == 2 and "a.run.json" in done.stderr and "b.run.json" in done.stderr
    done = genai("report", run["folder"] / "out", "--ids", "1,999999")
    assert done.returncode == 2 and "outside the vocabulary" in done.stderr
    done = genai("report", run["folder"] / "out")
    assert done.returncode == 2 and "no tokenizer" in done.stderr
