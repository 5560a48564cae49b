"""Real clusters on loopback, whose workers can not import our package, and whose workers can be
killed.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Read by every Python that starts with this folder on PYTHONPATH: it forgets where our package is,
# and refuses others.
HIDING = """
import os, sys
from importlib.abc import MetaPathFinder

def is_home(folder):
    return os.path.isfile(os.path.join(folder, "calibrant", "__init__.py"))

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in os.environ.get("HIDDEN_MODULES", "").split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.path[:] = [folder for folder in sys.path if not is_home(folder)]
sys.meta_path.insert(0, Refuse())
"""


def without_our_package(folder: Path, *also: str) -> dict[str, str]:
    """An environment whose Pythons can import neither our package nor the modules named."""
    hidden = folder / "hidden"
    hidden.mkdir(parents=True, exist_ok=True)
    (hidden / "sitecustomize.py").write_text(HIDING, encoding="utf-8")
    loopback = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    return {**os.environ, **loopback, "PYTHONPATH": str(hidden), "HIDDEN_MODULES": ",".join(also)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 300.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what} took longer than {seconds:g} seconds")
        time.sleep(0.05)
    return found


class Cluster:
    """A head and two workers, each a process group of its own."""

    def __init__(self, folder: Path, *hidden_modules: str) -> None:
        self.folder = folder
        self.environment = without_our_package(folder, *hidden_modules)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.started = 0

    def start(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def worker_command(self, number: int) -> list[str]:
        raise NotImplementedError

    def add_worker(self) -> None:
        self.started += 1
        self.workers.append(self.start(self.worker_command(self.started), f"worker-{self.started}"))

    def kill_worker(self, number: int) -> None:
        """End a worker as a power cut would, and start another in its place."""
        process = self.workers.pop(number)
        end(process)
        self.add_worker()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        for process in reversed(self.processes):
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class DaskCluster(Cluster):
    """A scheduler and two workers of one thread each."""

    def __init__(self, folder: Path, *hidden_modules: str, workers: int = 2) -> None:
        super().__init__(folder, *hidden_modules)
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.environment["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = "10"
        port = self.address.rpartition(":")[2]
        head = ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show"]
        self.start([sys.executable, "-m", "dask", *head], "head")
        for _ in range(workers):
            self.add_worker()

    def worker_command(self, number: int) -> list[str]:
        options = [
            "--host",
            "127.0.0.1",
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--memory-limit",
            "2GB",
        ]
        return [
            sys.executable,
            "-m",
            "dask",
            "worker",
            self.address,
            *options,
            "--local-directory",
            str(self.folder),
        ]


class SparkCluster(Cluster):
    """A standalone master and two workers of one core each, from the jars of the Python package."""

    def __init__(
        self, folder: Path, *hidden_modules: str, workers: int = 2, memory: str = "640m"
    ) -> None:
        super().__init__(folder, *hidden_modules)
        import pyspark

        self.memory = memory
        self.spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
        port = free_port()
        self.address = f"spark://127.0.0.1:{port}"
        self.environment |= {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_WORKER_DIR": str(folder / "work"),
        }
        self.environment["SPARK_DAEMON_JAVA_OPTS"] = (
            "-Dspark.ui.enabled=false -Dspark.master.ui.killEnabled=false"
        )
        head = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        self.start([self.spark_class, *head, "--webui-port", "0"], "head")
        for _ in range(workers):
            self.add_worker()

    def worker_command(self, number: int) -> list[str]:
        options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "2g"]
        return [self.spark_class, "org.apache.spark.deploy.worker.Worker", *options, self.address]

    def settings(self) -> dict[str, str]:
        """What a session needs to use this cluster from this process."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.executor.memory": self.memory,
            "spark.executor.cores": "1",
            "spark.pyspark.python": sys.executable,
            "spark.local.dir": str(self.folder / "scratch"),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.network.timeout": "120s",
        }

    def session(self) -> Any:
        """A session of this process on the cluster."""
        from pyspark.sql import SparkSession

        os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        builder = SparkSession.builder.master(self.address).appName("calibrant")
        for name, value in self.settings().items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        self.wait_for_executors(session)
        return session

    def wait_for_executors(self, session: Any) -> None:
        """Wait until both workers work for the session; the driver counts as one more."""
        known = session.sparkContext._jsc.sc()
        wait_for(lambda: known.getExecutorMemoryStatus().size() == 3, "starting executors")

    def kill_worker(self, number: int) -> None:
        """End a worker and the executors it has started, which are its children.

        Start another in its place.
        """
        import psutil

        process = self.workers[number]
        children = psutil.Process(process.pid).children(recursive=True)
        super().kill_worker(number)
        for child in children:
            if child.is_running():
                child.kill()


def stop_spark(session: Any) -> None:
    """End the session and its virtual machine."""
    from pyspark import SparkContext

    session.stop()
    gateway = SparkContext._gateway
    SparkContext._gateway = None
    SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(300)


class Killing:
    """Kill a worker of a cluster once, `after` so many seconds from now, while the caller works on."""

    def __init__(self, cluster: Cluster, number: int, after: float) -> None:
        self._done = threading.Event()
        self.in_the_middle = False
        self._thread = threading.Thread(target=self._run, args=(cluster, number, after))

    def _run(self, cluster: Cluster, number: int, after: float) -> None:
        self.in_the_middle = not self._done.wait(after)
        if self.in_the_middle:
            cluster.kill_worker(number)

    def __enter__(self) -> "Killing":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def java() -> str | None:
    """What keeps Spark from running here; None where nothing does."""
    try:
        said = subprocess.run(
            ["java", "-version"], capture_output=True, text=True, check=True
        ).stderr
    except (OSError, subprocess.CalledProcessError):
        return "Java is not installed"
    version = re.search(r'version "(\d+)', said)
    return (
        None
        if version and int(version[1]) >= 17
        else f"Java 17 is needed; found {said.splitlines()[0]}"
    )


def kill_at_random(
    cluster: Cluster,
    fit: Callable[[], Any],
    expected: Any,
    whole: Callable[[], Any],
    kills: int,
    seed: int,
) -> int:
    """Kill one of two workers at a random moment of each of so many fits, all of which must give
    what is expected.

    `whole` waits until the cluster is complete again. Returns how many kills came while a fit was
    under way.
    """
    import random

    chance = random.Random(seed)
    assert (
        fit() == expected
    )  # the first fit starts things up, the second one tells how long they take
    begun = time.monotonic()
    assert fit() == expected
    seconds = time.monotonic() - begun
    in_the_middle = 0
    for number in range(kills):
        with Killing(cluster, chance.randrange(2), chance.uniform(0.05, 0.8) * seconds) as killing:
            assert fit() == expected, f"after kill {number + 1}"
        in_the_middle += killing.in_the_middle
        whole()
    return in_the_middle
