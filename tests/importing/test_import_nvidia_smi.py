"""nvidia-smi: the matrix of topo -m and the list of -L."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysim.errors import ConfigError
from tests.importing.importing_steps import bring_in

LINKED = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV12\tPXB\t0-31,64-95\t0\t\tN/A
GPU1\tNV12\t X \tSYS\t32-63,96-127\t1\t\tN/A
NIC0\tPXB\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks
"""
PLAIN = """\
        GPU0    GPU1    GPU2    mlx4_0  CPU Affinity
GPU0     X      PIX     SYS     PHB     0-9,20-29
GPU1    PIX      X      SYS     PHB     0-9,20-29
GPU2    SYS     SYS      X      SYS     10-19,30-39
mlx4_0  PHB     PHB     SYS      X
"""
LIST = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\nGPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n"


def test_a_file_is_a_node(tmp_path: Path) -> None:
    made = bring_in(tmp_path, "nvidia-smi", {"n1.txt": LINKED, "n2.txt": PLAIN, "n3.txt": LIST + LINKED})
    assert made.size == (3, 7)
    types = {name: (node.type.gpus, node.type.nvlink, node.type.gpu_type) for name, node in made.nodes.items()}
    assert types == {
        "n1": (2, True, "gpu"),
        "n2": (3, False, "gpu"),
        "n3": (2, True, "NVIDIA A100-SXM4-80GB"),
    }
    assert made.says("n1: 2 GPUs, 2 of them with NVLink", "NV12", "on 2 NUMA nodes")
    assert made.says("a file is one node")


def test_the_list_alone_says_nothing_of_links(tmp_path: Path) -> None:
    made = bring_in(tmp_path, "nvidia-smi", {"node.txt": LIST})
    assert made.size == (1, 2)
    assert made.says("NVLink is not known")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PLAIN.split("GPU2    SYS")[0], "line 1: 3 GPUs in the header, 2 rows"),
        (PLAIN.replace("GPU1    PIX      X ", "GPU1    PIX      ? "), "line 3: no row of a matrix"),
        (LIST + PLAIN, "3 GPUs in the matrix, 2 in the list"),
        (LIST + LIST.replace("GPU-", "GPU-9"), "line 3: GPU 0 comes twice. A file is one node"),
        (PLAIN + PLAIN, "line 6: a second matrix. A file is one node"),
    ],
)
def test_broken(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        bring_in(tmp_path, "nvidia-smi", {"node.txt": text})
