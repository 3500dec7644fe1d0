"""A SLURM of one node on this machine: Debian's slurm-wlm, started and stopped by a test.

Nothing here is a test. Everything that SLURM writes lies in one folder; nobody is authenticated, so
no munge is needed, and daemons and jobs run as the user of the test.
"""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Optional

DAEMONS, COMMANDS = ("slurmctld", "slurmd"), ("sbatch", "srun", "squeue", "scancel", "sinfo")
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
_READY = 60.0  # seconds until the node must be idle
_ENDING = 30.0  # seconds until jobs that are cancelled must be gone

CONF = """\
ClusterName=eisl
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=eisl Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=YES State=UP
"""


def why_not() -> str:
    """Why SLURM cannot be started here; empty where it may be tried."""
    missing = [name for name in (*DAEMONS, *COMMANDS) if not shutil.which(name, path=_PATH)]
    if missing:
        return f"no {', '.join(missing)} (Debian: apt-get install slurm-wlm)"
    return ""


class Slurm:
    """A started cluster. Raises RuntimeError, with the end of its logs, if it does not start."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        values = {
            "host": socket.gethostname().split(".")[0],
            "ports": _free_ports(2),
            "user": getpass.getuser(),
            "folder": folder,
            "cpus": os.cpu_count(),
        }
        (folder / "slurm.conf").write_text(CONF.format(**values))
        self.environment: Dict[str, str] = {
            **{key: v for key, v in os.environ.items() if not key.startswith("SLURM_")},
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": _PATH,
        }
        self.daemons: List[subprocess.Popen] = []
        try:
            for name in DAEMONS:
                self._start(name)
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _start(self, name: str):
        program = shutil.which(name, path=_PATH)
        with open(self.folder / f"{name}.out", "wb") as out:
            self.daemons.append(
                subprocess.Popen(
                    [str(program), "-D", "-c" if name == "slurmctld" else "-v"],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )
            )

    def _wait(self):
        end = time.monotonic() + _READY
        while time.monotonic() < end and all(d.poll() is None for d in self.daemons):
            state = self.run("sinfo", "--noheader", "--format=%T", check=False)
            if state.strip() == "idle":
                return
            time.sleep(0.5)
        logs = "".join(p.read_text(errors="replace")[-1500:] for p in self.folder.glob("*.out"))
        raise RuntimeError(f"SLURM does not start on this machine:\n{logs}")

    def run(self, *command: str, check: bool = True) -> str:
        """The output of one of SLURM's commands."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def jobs(self, state: Optional[str] = None) -> List[str]:
        """The ids of the jobs that are not over, or of those in a state such as RUNNING."""
        states = [] if state is None else [f"--states={state}"]
        return self.run("squeue", "--noheader", "--format=%A", *states).split()

    def stop(self):
        """End what still runs, then the daemons."""
        if len(self.daemons) == len(DAEMONS):
            self.run("scancel", f"--user={getpass.getuser()}", check=False)
            end = time.monotonic() + _ENDING  # else a step would outlive the daemons
            while time.monotonic() < end and self.run("squeue", "--noheader", check=False).strip():
                time.sleep(0.2)
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()


def _free_ports(count: int) -> List[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
