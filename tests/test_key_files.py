"""Files of keys, certificates and networks: nobody else can read them, and no link leads them elsewhere."""

import os
import stat

import pytest

from gpn_bayes.federated.processes.setup_files import write_parties
from gpn_bayes.simulate import DiscreteNetwork, write_bif
from gpn_bayes.wire.certificates import new_authority, new_party, new_private_key, write_key, write_request
from tests.command_line import call

COIN = DiscreteNetwork({"coin": ["head", "tail"]}, {}, {"coin": [0.5, 0.5]})


@pytest.fixture(autouse=True)
def open_mask():
    """Work as most users do, whose files everybody may read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def victim(tmp_path):
    """Return a file elsewhere that somebody wants to have overwritten."""
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "precious"
    path.write_text("precious")
    return path


def readable_by_others(folder):
    """Return the files of a folder that their owner isn't alone to read, and how many files there are."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if stat.S_IMODE(path.stat().st_mode) != 0o600], len(files)


def test_files_by_the_common_way_are_seen_to_be_readable(tmp_path):
    """Negative control."""
    (tmp_path / "key.pem").write_text("key")
    assert readable_by_others(tmp_path) == ([tmp_path / "key.pem"], 1)


@pytest.mark.parametrize(
    ("command", "count"),
    [
        (("federate", "certs", "--clients", "a,b,c"), 16),
        (("federate", "key", "--name", "a"), 2),
        (("private-k2", "certs"), 6),
        (("private-k2", "certs", "--role", "listen"), 2),
    ],
)
def test_all_files_of_these_commands_are_their_owners(command, count, tmp_path, capsys):
    assert call(capsys, *command, "--out", tmp_path / "new")[0] == 0
    assert readable_by_others(tmp_path / "new") == ([], count)
    code, _, errors = call(capsys, *command, "--out", tmp_path / "new")
    assert code == 2 and errors.startswith("error: nothing is overwritten; ")


def test_signed_folders_are_their_owners(tmp_path, capsys):
    for name in ("coordinator", "a", "b", "c"):
        assert call(capsys, "federate", "key", "--name", name, "--out", tmp_path / name)[0] == 0
    requests = [x for name in ("coordinator", "a", "b", "c") for x in ("--request", tmp_path / name / "request.pem")]
    assert call(capsys, "federate", "certs", *requests, "--out", tmp_path / "signed")[0] == 0
    assert readable_by_others(tmp_path / "signed") == ([], 12)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_key_takes_the_place_of_a_link(link, tmp_path, victim):
    link(victim, tmp_path / "key.pem")
    write_key(new_private_key(), tmp_path / "key.pem")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "key.pem").is_symlink() and readable_by_others(tmp_path)[0] == [victim]


def test_a_key_in_place_of_a_file_that_others_could_read_is_its_owners(tmp_path):
    (tmp_path / "key.pem").write_text("old")
    write_key(new_private_key(), tmp_path / "key.pem")
    assert readable_by_others(tmp_path) == ([], 1) and "PRIVATE KEY" in (tmp_path / "key.pem").read_text()


def test_a_certificate_takes_the_place_of_a_link(tmp_path, victim):
    os.symlink(victim, tmp_path / "certificate.pem")
    new_party(new_authority(), "a").write(tmp_path / "certificate.pem", tmp_path / "key.pem")
    assert victim.read_text() == "precious" and not (tmp_path / "certificate.pem").is_symlink()


@pytest.mark.parametrize("name", ["key.pem", "request.pem"])
def test_links_where_a_new_key_would_stand_are_refused(name, tmp_path, victim, capsys):
    for target in (victim, tmp_path / "nothing"):
        os.symlink(target, tmp_path / name)
        with pytest.raises(ValueError, match=f"^nothing is overwritten; '.*{name}' exists: choose another folder$"):
            write_request("a", tmp_path / "request.pem", tmp_path / "key.pem")
        assert call(capsys, "federate", "key", "--name", "a", "--out", tmp_path)[0] == 2
        (tmp_path / name).unlink()
    assert victim.read_text() == "precious" and os.listdir(tmp_path) == ["elsewhere"]


def test_links_where_a_partys_folder_would_stand_are_refused(tmp_path, victim, capsys):
    (tmp_path / "out").mkdir()
    for target in (victim.parent, tmp_path / "nothing"):
        for name in ("b", "listen"):
            os.symlink(target, tmp_path / "out" / name)
        with pytest.raises(ValueError, match=r"^nothing is overwritten; '.*b' exists: choose another --out$"):
            write_parties(tmp_path / "out", ["a", "b", "c"])
        code, _, errors = call(capsys, "private-k2", "certs", "--out", tmp_path / "out")
        assert code == 2 and errors.startswith("error: nothing is overwritten; ") and errors.count("\n") == 1
        assert sorted(os.listdir(tmp_path / "out")) == ["b", "listen"]
        for name in ("b", "listen"):
            (tmp_path / "out" / name).unlink()
    assert os.listdir(victim.parent) == ["precious"] and not (tmp_path / "nothing").exists()


def test_a_network_is_its_owners_and_no_link_leads_it_elsewhere(tmp_path, victim):
    (tmp_path / "out").mkdir()
    write_bif(COIN, tmp_path / "out" / "coin.bif")
    assert readable_by_others(tmp_path / "out") == ([], 1)
    for target in (victim, tmp_path / "nothing"):
        os.symlink(target, tmp_path / "link.bif")
        with pytest.raises(ValueError, match=r"^nothing is overwritten; '.*link\.bif' exists: choose another name$"):
            write_bif(COIN, tmp_path / "link.bif")
        (tmp_path / "link.bif").unlink()
    assert victim.read_text() == "precious" and not (tmp_path / "nothing").exists()
    with pytest.raises(ValueError, match=r"^a file must be writable; '.*coin\.bif' isn't: No such file or directory$"):
        write_bif(COIN, tmp_path / "nowhere" / "coin.bif")
