"""compose.yaml says what the programs know: commands, settings, secrets, ports. No container engine is needed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from host import settings as host_settings
from host.stack.roles import AUDITOR, LIMITED, OWNER, SEALER, Side
from host.stack.secrets import COMPOSE_ISSUER, NAMES
from shared_contracts.contract import FAMILIES
from tests.support.compose import FILE, ROOT, SECRETS, SERVICES, environment, ours, secrets_of
from tests.support.pages import complaint
from tool_server import settings as tools_settings
from tool_server.edge import served_hosts

HOST, TOOLS = ours("kessai"), ours("kessai-tools")
OURS = HOST | TOOLS
AUDIT = "reconcile"
SEAL_KEYS = "seal-keys.json"  # public halves alone
LASTING = {name for name, service in SERVICES.items() if service["restart"] == "unless-stopped"}
DSNS = [(name, key) for name, service in OURS.items() for key in environment(service) if key.endswith("_DSN")]


def published(service: dict[str, Any]) -> list[str]:
    return list(service.get("ports", []))


def settings_of(monkeypatch: pytest.MonkeyPatch, service: dict[str, Any]) -> Any:
    """What the program itself makes of its environment."""
    for name in [name for name in os.environ if name.startswith("KESSAI_")]:
        monkeypatch.delenv(name)
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    if service["command"][0] == "kessai":
        return host_settings.load()
    serves = service["command"][1] == "serve"
    return tools_settings.load(tools_settings.Settings if serves else tools_settings.OwnerSettings)


def test_it_starts_the_database_both_migrations_the_demo_both_programs_a_mail_sink_and_the_audit() -> None:
    assert set(SERVICES) == {
        "postgres", "migrate-host", "migrate-tools", "load-demo", "tool-server", "worker", "mail", "reconcile",
    }  # fmt: skip
    assert set(OURS) == set(SERVICES) - {"postgres", "mail"}
    assert SERVICES["load-demo"]["profiles"] == ["demo"]
    assert SERVICES["reconcile"]["profiles"] == ["audit"]


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one_that_the_program_knows(name: str) -> None:
    assert complaint(OURS[name]["command"]) is None


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_one_that_the_program_knows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, OURS[name])
    given = {key.removeprefix("KESSAI_").removeprefix("TOOLS_").lower() for key in environment(OURS[name])}
    assert settings.model_fields_set == given


def test_the_worker_and_the_tool_server_mean_the_same_server_and_the_same_issuer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    links = host_settings.links(settings_of(monkeypatch, SERVICES["worker"]))
    server = settings_of(monkeypatch, SERVICES["tool-server"])
    assert links is not None
    assert links.audience == server.resource
    assert links.issuer == COMPOSE_ISSUER
    address = urlsplit(links.server_url)
    assert (address.hostname, address.port) == ("tool-server", server.port)
    assert address.path == urlsplit(server.resource).path
    assert address.netloc in served_hosts(server.resource, server.allowed_hosts)


@pytest.mark.parametrize(("name", "key"), DSNS)
def test_every_connection_goes_to_its_own_database_as_its_own_role_without_a_password(name: str, key: str) -> None:
    known = conninfo_to_dict(environment(SERVICES[name])[key])
    side, family = (Side.HOST if name in HOST else Side.TOOLS), key.removesuffix("_DSN").split("_")[-1].lower()
    roles = {"dsn": "host_rt", "kessai": "host_rt", "migrate": OWNER[side]} | {f: f"tools_{f}" for f in FAMILIES}
    if family == "sealer":
        roles = {family: SEALER[side]}
    if name == AUDIT:
        side, roles = Side(family), {of.value: role for of, role in AUDITOR.items()}
    assert set(known) == {"host", "dbname", "user", "passfile"}
    assert (known["host"], known["dbname"], known["user"]) == ("postgres", side, roles[family])
    assert known["passfile"] == f"{SECRETS}/{known['user']}.pgpass"


@pytest.mark.parametrize("name", SERVICES)
def test_every_secret_that_a_setting_names_is_given_to_its_service(name: str) -> None:
    service = SERVICES[name]
    named = set(re.findall(rf"{SECRETS}/([\w.-]+)", " ".join(environment(service).values())))
    sides = {Side.HOST: environment(service).get("KESSAI_ROLE_PASSWORDS")}
    sides[Side.TOOLS] = environment(service).get("KESSAI_TOOLS_ROLE_PASSWORDS")
    roles = {role for side, value in sides.items() if value == SECRETS for role in LIMITED[side]}
    jwks = {"jwks.json"}  # which the issuers' file names
    beside = {"postgres": set(OWNER.values()), "tool-server": jwks, "migrate-tools": jwks}
    assert secrets_of(service) == named | roles | beside.get(name, set())


def test_every_secret_is_made_by_the_command_and_each_has_its_own_file() -> None:
    used = {secret for service in SERVICES.values() for secret in secrets_of(service)}
    assert set(FILE["secrets"]) == used
    assert used <= set(NAMES)
    for name, secret in FILE["secrets"].items():
        assert secret == {"file": f"./secrets/{name}"}


def test_neither_program_is_given_a_secret_of_the_other() -> None:
    host = {name for name in NAMES if name.startswith("host_")} | {"signing.jwk", "seal-host.jwk", SEAL_KEYS}
    tools = {name for name in NAMES if name.startswith("tools_")} | {
        "jwks.json",
        "issuers.json",
        "seal-tools.jwk",
        SEAL_KEYS,
    }
    auditors = {f"{role}.pgpass" for role in AUDITOR.values()}
    allowed = {"postgres": {"postgres", *OWNER.values()}, "mail": set[str](), AUDIT: auditors | {SEAL_KEYS}}
    for name, service in SERVICES.items():
        assert secrets_of(service) <= allowed.get(name, host if name in HOST else tools)
    owners = {name for name in NAMES if name.split(".")[0] in OWNER.values()}
    for name in LASTING - {"postgres"}:
        assert not secrets_of(SERVICES[name]) & owners
    for secret, whose in (("signing.jwk", "worker"), ("seal-host.jwk", "worker"), ("seal-tools.jwk", "tool-server")):
        assert [name for name, service in SERVICES.items() if secret in secrets_of(service)] == [whose]
    assert {name for name, service in SERVICES.items() if secrets_of(service) & auditors} == {AUDIT}


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_has_a_right_that_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"\$\{RUN_AS:\?[^}]+\}", service["user"])  # an owner of the secrets, or it does not start
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not set(service) & {
        "privileged",
        "cap_add",
        "devices",
        "network_mode",
        "pid",
        "ipc",
        "env_file",
        "volumes_from",
    }


def test_the_database_has_no_port_outside_and_everything_else_is_bound_to_this_machine() -> None:
    assert {name for name, service in SERVICES.items() if published(service)} == {"tool-server", "mail"}
    for service in SERVICES.values():
        assert "expose" not in service
        assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in published(service))
    served = environment(SERVICES["tool-server"])
    assert published(SERVICES["tool-server"]) == [
        f"127.0.0.1:{served['KESSAI_TOOLS_PORT']}:{served['KESSAI_TOOLS_PORT']}"
    ]
    assert urlsplit(served["KESSAI_TOOLS_RESOURCE"]).netloc == f"127.0.0.1:{served['KESSAI_TOOLS_PORT']}"


def test_only_who_needs_one_another_shares_a_network() -> None:
    networks = {name: set(service["networks"]) for name, service in SERVICES.items()}
    assert set().union(*networks.values()) == set(FILE["networks"])
    for name, service in SERVICES.items():
        reached = set(service.get("depends_on", {})) & {"postgres", "tool-server", "mail"}
        reached |= {str(conninfo_to_dict(environment(service)[key])["host"]) for owner, key in DSNS if owner == name}
        for other in reached:
            assert networks[name] & networks[other], f"{name} cannot reach {other}"
    assert not networks["worker"] & networks["mail"]
    for name in ("host-data", "tools-data"):
        assert FILE["networks"][name] == {"internal": True}


def test_what_lasts_is_watched_and_given_time_to_end_and_what_does_not_runs_once() -> None:
    assert {"postgres", "tool-server", "worker", "mail"} == LASTING
    for name in LASTING:
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"
    for name in LASTING - {"mail"}:
        assert re.fullmatch(r"\d+s", SERVICES[name]["stop_grace_period"])
    for name in set(SERVICES) - LASTING:
        assert SERVICES[name]["restart"] == "no"


def test_whoever_waits_waits_for_what_can_come_true() -> None:
    for service in SERVICES.values():
        for other, wish in service.get("depends_on", {}).items():
            condition = "service_healthy" if other in LASTING else "service_completed_successfully"
            assert wish == {"condition": condition}
            assert "profiles" not in SERVICES[other]
    assert set(SERVICES["worker"]["depends_on"]) == {"migrate-host", "tool-server"}
    assert "migrate-tools" in SERVICES["tool-server"]["depends_on"]


def test_every_volume_is_declared_or_a_file_of_the_repository_that_is_only_read() -> None:
    named = set()
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source, target, *mode = volume.split(":")
            assert Path(target).is_absolute()
            if source.startswith("./"):
                assert mode == ["ro"]
                assert (ROOT / source).is_file()
            else:
                named.add(source)
    assert named == set(FILE["volumes"])
    mounted = {volume.split(":")[1] for volume in SERVICES["load-demo"]["volumes"]}
    assert SERVICES["load-demo"]["command"][2] in mounted


def test_every_image_of_others_names_its_version() -> None:
    for service in SERVICES.values():
        assert service["image"] == "kessai" or re.fullmatch(r"[a-z/]+:v?\d+(\.\d+)*", service["image"])
    assert {service["build"] for service in OURS.values()} == {"."}
