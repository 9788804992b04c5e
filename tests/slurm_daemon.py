"""Run a private one-node Slurm cluster on loopback, from the installed Slurm programs."""

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import patience

# After which a daemon that was asked to end is killed.
STOP_SECONDS = 10.0

CONF = """\
ClusterName=test
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
{binding}
SlurmUser={uid}
SlurmdUser={uid}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName={node} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory}
PartitionName=main Nodes={node} Default=YES MaxTime=INFINITE DefMemPerCPU={memory_per_cpu}
"""


def missing() -> str:
    """Say in one line why Slurm cannot run here; empty if it can."""
    for name in ("sbatch", "slurmctld", "slurmd", "munged"):
        if not _program(name):
            return f"{name} is not installed (Debian: slurmctld, slurmd, slurm-client, munge)"
    try:
        pwd.getpwuid(os.geteuid())
        # Slurm asks in this way where to listen, and is told nowhere if loopback is all there is.
        socket.getaddrinfo(None, 1, socket.AF_INET, flags=socket.AI_ADDRCONFIG | socket.AI_PASSIVE)
    except KeyError:
        return f"Slurm runs only for users with a name, and user {os.geteuid()} has none"
    except OSError:
        return "Slurm needs a network interface besides loopback"
    return ""


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Run a cluster with all its files in the folder; give what clients need in their environment.

    On exit the daemons are stopped, and every process that was started with that environment
    is killed: jobs, whatever they left behind, and waiting clients.
    """
    folder = folder.resolve()
    _write_files(folder)
    env = {"SLURM_CONF": f"{folder}/slurm.conf"}
    # The daemons get this and no more, so that a job sees only what its own sbatch sent.
    clean = {"PATH": _search_path(), **env}
    daemons: list[subprocess.Popen[bytes]] = []

    def start(name: str, *options: str) -> None:
        with (folder / f"{name}.out").open("wb") as out:
            daemon = subprocess.Popen(
                [_program(name), *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=clean,
                # Ctrl-C must reach us only: we stop the daemons in order.
                start_new_session=True,
            )
        daemons.append(daemon)

    def wait_until(ready: Callable[[], bool], what: str) -> None:
        while not ready():
            if any(daemon.poll() is not None for daemon in daemons):
                raise RuntimeError(f"a daemon ended before {what}\n{_tails(folder)}")
            if time.monotonic() > began + patience.SECONDS:
                raise RuntimeError(f"not within {patience.SECONDS:g} s: {what}\n{_tails(folder)}")
            time.sleep(0.05)

    began = time.monotonic()
    try:
        files = ("socket", "key-file", "pid-file", "log-file", "seed-file")
        options = [f"--{each}={folder}/munge.{each.removesuffix('-file')}" for each in files]
        # By force, as munged wants a socket that all users can reach, which this need not be.
        start("munged", "--foreground", "--force", *options)
        wait_until((folder / "munge.socket").exists, "munged made its socket")
        start("slurmctld", "-D")
        start("slurmd", "-D")
        # A job sent in the controller's first second starts late, and sbatch --wait, which looks
        # after 2 s and then after 10 s, would return later still.
        settled = time.monotonic() + 1.5
        wait_until(lambda: time.monotonic() > settled and _node_state(clean) == "idle", "the node was idle")
        yield env
    finally:
        # slurmctld before slurmd, so that no job is started again; munged last, both need it.
        for daemon in daemons[1:] + daemons[:1]:
            _stop(daemon)
        _kill_leftovers(f"SLURM_CONF={env['SLURM_CONF']}".encode())


def _search_path() -> str:
    # Users other than root often lack /usr/sbin, where Debian puts the daemons.
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin"


def _program(name: str) -> str:
    return shutil.which(name, path=_search_path()) or ""


def _write_files(folder: Path) -> None:
    node = socket.gethostname().split(".")[0]
    # Slurm makes a socket of this name for each job, and the system allows 107 bytes.
    if len(f"{folder}/spool/{node}_12345.4294967291") > 107:
        raise RuntimeError(f"the folder's name is too long for Slurm's sockets: {folder}")
    if not re.fullmatch(r"[\w./-]+", str(folder), re.ASCII):
        raise RuntimeError(f"slurm.conf cannot hold all characters of the folder's name: {folder}")
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    (folder / "munge.key").touch(mode=0o600)
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    # Slurm listens where the host's name points, or else everywhere, where munge's key guards it.
    binding = ""
    with suppress(OSError):
        if socket.gethostbyname(socket.gethostname()) == "127.0.0.1":
            binding = "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny"
    # Both are open at the same time, so that the ports differ.
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        ports = [one.getsockname()[1], two.getsockname()[1]]
    # Slurm is told to believe these numbers, so a small machine still takes a 2 GB job.
    cpus = max(2, os.cpu_count() or 1)
    memory = max(4096, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20)
    text = CONF.format(
        folder=folder,
        node=node,
        binding=binding,
        ports=ports,
        uid=os.geteuid(),
        cpus=cpus,
        memory=memory,
        # Without a default, a job that names no memory would take the whole node.
        memory_per_cpu=memory // cpus,
    )
    (folder / "slurm.conf").write_text(text)
    # slurmd would look for the kind of cgroups and end without any; told the kind, it uses none.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")


def _node_state(env: dict[str, str]) -> str:
    command = [_program("sinfo"), "--noheader", "--format=%T"]
    with suppress(subprocess.SubprocessError):
        return subprocess.check_output(
            command, env=env, text=True, stderr=subprocess.DEVNULL, timeout=patience.SECONDS
        ).strip()
    return ""


def _tails(folder: Path) -> str:
    parts: list[str] = []
    for path in sorted(folder.glob("*.out")):
        parts += [f"--- {path.name}", *path.read_text(errors="replace").splitlines()[-15:]]
    return "\n".join(parts)


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _kill_leftovers(variable: bytes) -> None:
    # slurmd leaves its jobs running and a job can leave processes, but all have the variable.
    deadline = time.monotonic() + STOP_SECONDS
    found = True
    while found and time.monotonic() < deadline:
        found = False
        for path in Path("/proc").glob("[0-9]*/environ"):
            # Processes end while we look, and those of other users are closed to us.
            with suppress(OSError):
                pid = int(path.parent.name)
                if pid != os.getpid() and variable in path.read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
                    found = True
        time.sleep(0.05)
