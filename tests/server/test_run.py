"""The process of a service: certificates, signals, and the command line that talks to it."""

import configparser
import datetime
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.cli import main
from sfumato.cli.serve import free_port
from sfumato.client import connect
from sfumato.errors import InvalidParameter, ServiceFailed
from sfumato.ledger import Ledger
from sfumato.server.configuration import Configuration, Listen, read
from sfumato.server.identity import Role
from sfumato.server.run import require_free
from sfumato.server.service import Service
from tests.curator.clinic import built
from tests.server.conftest import PEOPLE
from tests.server.conftest import POLICY as CLINIC

ROOT = Path(__file__).parents[2]
COUNT = "SELECT COUNT(*) AS n FROM visits"
SERVICE = """
[http]
listen = "127.0.0.1:0"
[limits]
response_quantum = {quantum}
workers = 1
[data.clinic]
source = "clinic.duckdb"
policy = "policy.toml"
"""
TLS = '[tls]\ncertificate = "cert.pem"\nkey = "key.pem"\n'


def write_certificate(folder, serial):
    """A self-signed certificate for this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime(2020, 1, 1)
    made = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key(), serial_number=serial)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))


class Process:
    """`sfumato serve` in a process of its own."""

    def __init__(self, folder):
        command = [sys.executable, "-m", "sfumato", "serve", str(folder / "service.toml")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.ready = self.event("ready")

    def event(self, name):
        """The next event of this name in the log; every line is JSON."""
        for line in self.process.stderr:
            found = json.loads(line)
            if found["event"] == name:
                return found
        raise AssertionError(f"it ended with {self.process.wait()}")

    @property
    def port(self):
        return self.ready["ports"]["http"]

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()


@pytest.fixture
def start(tmp_path):
    """Start a service in a folder; its analyst's token, and the process."""
    started = []

    def begin(quantum=0.0, extra=""):
        built(tmp_path / "clinic.duckdb")
        (tmp_path / "policy.toml").write_text(CLINIC.replace("[tables.visits]", f"{PEOPLE}[tables.visits]", 1))
        (tmp_path / "service.toml").write_text(SERVICE.format(quantum=quantum) + extra)
        service = Service.open(Configuration.load(tmp_path / "service.toml"))
        token = service.data["clinic"].identity.new("ann", Role.ANALYST)
        service.close()
        started.append(Process(tmp_path))
        return token, started[-1]

    yield begin
    for one in started:
        one.stop()


def serial(port, trusted):
    """The serial number of the certificate that is shown there."""
    context = ssl.create_default_context(cafile=str(trusted))
    with (
        socket.create_connection(("127.0.0.1", port), 10) as wire,
        context.wrap_socket(wire, server_hostname="localhost") as secure,
    ):
        return int(secure.getpeercert()["serialNumber"], 16)


def test_certificates_are_shown_reloaded_on_sighup_and_kept_if_the_new_one_is_broken(start, tmp_path):
    write_certificate(tmp_path, 11)
    token, server = start(extra=TLS)
    cert = tmp_path / "cert.pem"
    assert serial(server.port, cert) == 11
    remote = connect(f"https://localhost:{server.port}", token=token, certificates=str(cert))
    assert remote.ask(COUNT, epsilon=0.1).charged
    for _ in range(3):  # on one connection, whose replies arrive whole
        assert remote.catalogue["tables"] and "visits" in remote.policy()
    with pytest.raises(ServiceFailed):
        connect(f"https://localhost:{server.port}", token=token).ask(COUNT, epsilon=0.1)  # nobody vouches for it
    remote.close()
    write_certificate(tmp_path, 22)
    server.process.send_signal(signal.SIGHUP)
    server.event("certificate reloaded")
    assert serial(server.port, cert) == 22
    (tmp_path / "key.pem").write_text("broken")
    server.process.send_signal(signal.SIGHUP)
    server.event("certificate not reloaded")
    assert serial(server.port, cert) == 22
    server.process.terminate()
    assert server.process.wait(30) == 0


def test_on_sigterm_an_answer_under_way_is_given_and_later_questions_are_not_taken(start):
    token, server = start(quantum=1.5)
    remote, answers = connect(f"http://127.0.0.1:{server.port}", token=token), []
    asking = threading.Thread(target=lambda: answers.append(remote.ask(COUNT, epsilon=0.1, key="last")))
    asking.start()
    ledger = Ledger.open(Path(server.process.args[-1]).parent / "clinic.duckdb.ledger")
    while not ledger.verify().costs:  # it has been charged, and waits for its moment
        threading.Event().wait(0.02)
    server.process.terminate()
    server.event("stopping")
    asking.join(30)
    assert answers[0].charged
    assert server.process.wait(30) == 0
    assert ledger.find_charge(who="ann", key="last") is not None
    ledger.close()
    remote.close()


def test_killed_with_sigkill_an_answer_can_be_asked_for_again_and_is_charged_once(start, tmp_path):
    token, server = start(quantum=1.5)
    remote = connect(f"http://127.0.0.1:{server.port}", token=token)

    def ask():
        with pytest.raises(ServiceFailed):
            remote.ask(COUNT, epsilon=0.1, key="killed")

    asking = threading.Thread(target=ask)
    asking.start()
    ledger = Ledger.open(tmp_path / "clinic.duckdb.ledger")
    while not ledger.verify().costs:
        threading.Event().wait(0.02)
    server.process.kill()
    asking.join(30)
    server.process.wait()
    again = Process(tmp_path)
    try:
        answer = connect(f"http://127.0.0.1:{again.port}", token=token).ask(COUNT, epsilon=0.1, key="killed")
        assert answer.columns[0] == "n"
        assert len(ledger.verify().costs) == 1
    finally:
        again.stop()
        ledger.close()


def test_the_command_line_asks_a_service(start, tmp_path, monkeypatch):
    token, server = start()
    monkeypatch.setenv("SFUMATO_TOKEN", token)
    url, runner = f"http://127.0.0.1:{server.port}/clinic", CliRunner()

    def run(*words):
        return runner.invoke(main, [str(word) for word in words])

    asked = run("ask", url, COUNT, "--epsilon", 0.1, "--json")
    assert json.loads(asked.output)["charged"]
    assert run("ask", url, COUNT, "--epsilon", 0.1, "--csv").output.splitlines()[0] == "n,n low,n high"
    pyarrow = pytest.importorskip("pyarrow")
    arrow = run("ask", url, COUNT, "--epsilon", 0.1, "--arrow").stdout_bytes
    assert pyarrow.ipc.open_stream(arrow).read_all().num_rows == 1
    assert "nothing has been charged" in run("preview", url, COUNT, "--epsilon", 0.1).output
    assert "promised:  ε = 8" in run("budget", url).output
    monkeypatch.setenv("COLUMNS", "100")
    lines = run("ledger", "history", url).output.splitlines()
    assert any(all(word in line for word in ("charged", "ann", "ε=0.1", "visits")) for line in lines), lines
    assert max(map(len, lines)) <= 100
    refused = run("ledger", "verify", url)
    assert refused.exit_code == 1 and "analyst does not include this" in refused.output
    assert run("ask", url, "SELECT * FROM visits", "--epsilon", 0.1).exit_code == 3
    assert run("ask", url, COUNT, "--epsilon", 0.1, "--as", "bob").exit_code == 2
    monkeypatch.delenv("SFUMATO_TOKEN")
    assert "needs a token" in run("budget", url).output


def test_tokens_are_made_listed_and_ended_from_the_command_line(start, tmp_path):
    _, server = start()
    runner, service = CliRunner(), ("--service", str(tmp_path / "service.toml"))
    made = runner.invoke(main, ["token", "new", "bob", "--role", "auditor", "--days", "3", *service]).stdout.strip()
    url = f"http://127.0.0.1:{server.port}"
    assert connect(url, token=made).verify()["intact"]
    listed = runner.invoke(main, ["token", "list", *service]).output
    assert "bob  auditor" in listed and made not in listed
    ended = runner.invoke(main, ["token", "revoke", made.split("_")[1], *service])
    assert ended.exit_code == 0 and "revoked" in ended.output
    with pytest.raises(Exception, match="not valid here"):
        connect(url, token=made).verify()

    # the owner reads, checks and publishes a policy, and buys bounds
    owner = runner.invoke(main, ["token", "new", "owner", "--role", "owner", *service]).stdout.strip()
    by, place = ("--token", owner), tmp_path / "new.toml"
    text = runner.invoke(main, ["policy", "show", f"{url}/clinic", *by]).stdout
    place.write_text(text)
    assert "nothing to change" in runner.invoke(main, ["policy", "publish", f"{url}/clinic", str(place), *by]).output
    place.write_text(text.replace("[analysts]", "[analysts]\nzoe = 0.01", 1))
    published = runner.invoke(main, ["policy", "publish", f"{url}/clinic", str(place), "--yes", *by])
    assert published.exit_code == 0 and "analysts.zoe: new, 0.01" in published.output, published.output
    assert runner.invoke(main, ["policy", "show", f"{url}/clinic", *by]).stdout == place.read_text()
    bought = runner.invoke(main, ["policy", "suggest", f"{url}/clinic", "visits.stay", "--epsilon", "0.2", *by])
    assert bought.stdout.startswith("stay = {low = ")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('[http]\nlisten = "0.0.0.0:80"\n[data.a]\nsource = "a"\npolicy = "b"\n', "without a certificate"),
        ('[http]\nlisten = "nowhere"\n[data.a]\nsource = "a"\npolicy = "b"\n', "address and a port"),
        ("[data]\n", "none"),
        ('[data.A]\nsource = "a"\npolicy = "b"\n', "small letters"),
        ('[data.a]\nsource = "postgresql://x/y"\npolicy = "b"\n', "say where it is"),
        ('[limits]\nrate = true\n[data.a]\nsource = "a"\npolicy = "b"\n', "limits.rate"),
        ('[limit]\nrate = 1\n[data.a]\nsource = "a"\npolicy = "b"\n', "an entry 'limit'"),
        ("not toml", "no TOML"),
    ],
)
def test_a_configuration_that_is_not_clear_is_refused(tmp_path, text, found):
    (tmp_path / "service.toml").write_text(text)
    with pytest.raises(InvalidParameter, match=found):
        Configuration.load(tmp_path / "service.toml").require_private()


def test_a_policy_serves_the_data_beside_it(tmp_path):
    built(tmp_path / "clinic.duckdb")
    (tmp_path / "clinic.toml").write_text(CLINIC)
    found = CliRunner().invoke(main, ["serve", "--check", str(tmp_path / "clinic.toml")])
    assert (found.exit_code, found.output.strip()) == (0, "clinic.toml: clinic can be served")


def test_what_a_service_writes_is_where_its_systemd_unit_lets_it():
    """The audit log and drafts of policies lay in a folder that the unit makes read-only."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(ROOT / "deploy" / "sfumato.service")
    writable = [Path(one) for one in unit["Service"]["ReadWritePaths"].split()]
    assert {one.name for one in writable} == set(unit["Service"]["StateDirectory"].split())
    place = Path(unit["Service"]["ExecStart"].split()[-1])
    text = (ROOT / "deploy" / "service.toml").read_text()
    settings = read(tomllib.loads(text), place.parent, place.stem)
    (data,) = settings.data.values()
    assert data.anchor.parent != Path(data.ledger).parent
    for written in (settings.audit_log, data.policy, Path(data.ledger), data.anchor):
        assert written.parent in writable
    assert place.parent in settings.tls.key.parents and settings.tls.key.parents[1] not in writable


def test_an_address_that_is_taken_is_named_before_anything_opens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidParameter, match=f"nothing can listen at 127.0.0.1:{port}"):
            require_free(Listen("127.0.0.1", port))
        assert free_port(port) != port
    require_free(Listen("127.0.0.1", port))
    assert free_port(port) == port
