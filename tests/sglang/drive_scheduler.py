"""Runs SGLang's own event loop over a tiny random Llama on the CPU, recorded and witnessed.

    PYTHON drive_scheduler.py FOLDER [NAME...]

Each situation is run in a process of its own, which begins with SGLang imported:
`FOLDER/NUMBER/truth.jsonl` gets the witness's lines, `FOLDER/NUMBER/traces` the trace. Plug-ins are
loaded as SGLang loads them; requests come as from its tokenizer, and its loop ends when told to.
"""

# ruff: noqa: PLC0415 - what is SGLang's is imported when its plug-ins can be hooked
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
from array import array
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.sglang import adapters, drafts
from tests.sglang.grammars import late_backend
from tests.sglang.situations import SITUATIONS
from tests.sglang.witness import Witness

NUM_TOKENS = 256
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "vocab_size": NUM_TOKENS,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5, "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2,
    "tie_word_embeddings": False, "hidden_act": "silu",
}  # fmt: skip
DEFAULTS = {
    "disable_overlap_schedule": True, "max_running_requests": 16, "grammar_backend": "none",
}  # fmt: skip
"""What a situation's settings replace."""
FOREVER = 1 << 60


class Feed:
    """Stands where requests come from: gives those that are due, then tells the loop to end."""

    def __init__(self, situation: dict[str, Any], witness: Witness) -> None:
        self._requests = list(situation["requests"])
        self._aborts = list(situation["aborts"])
        self._pauses = list(situation["pauses"])
        self._sessions = list(situation["sessions"])
        self._rounds = 0
        self._witness = witness
        self._is_idle = False

    def due(self, local_reqs: Any = None) -> list[Any]:
        """What has come by now; when nobody is left, what ends the loop."""
        now = self._witness.num_formed
        if self._is_idle and not self._aborts:
            now = min((each["at"] for each in self._requests), default=now)
        came = [each for each in self._requests if self._has_come(each, now)]
        gone = [_abort(each) for each in self._aborts if each["at"] <= now]
        self._requests = [each for each in self._requests if each not in came]
        self._aborts = [each for each in self._aborts if each["at"] > now]
        return [*self._opened(now), *map(_made, came), *gone, *self._closed(now),
                *self._paused(now), *(local_reqs or ())]  # fmt: skip

    def _has_come(self, row: dict[str, Any], now: int) -> bool:
        """Whether it is time, and whoever it goes on from has ended."""
        after = row.get("after")
        return bool(row["at"] <= now and (after is None or after in self._witness.ended))

    def _opened(self, now: int) -> list[Any]:
        from sglang.srt.managers.io_struct import OpenSessionReqInput

        opened = [each for each in self._sessions if each["at"] <= now and not each.get("is_open")]
        for each in opened:
            each["is_open"] = True
        return [OpenSessionReqInput(capacity_of_str_len=10**6, session_id=each["id"],
                                    streaming=each["streaming"]) for each in opened]  # fmt: skip

    def _closed(self, now: int) -> list[Any]:
        """Sessions that end: then, or where all that runs in them has been served."""
        from sglang.srt.managers.io_struct import CloseSessionReqInput

        over = [each for each in self._sessions if each["closed_at"] <= now]
        self._sessions = [each for each in self._sessions if each not in over]
        return [CloseSessionReqInput(session_id=each["id"]) for each in over]

    def _paused(self, now: int) -> list[Any]:
        """What pauses the engine, or lets it go on after as many rounds of its loop."""
        from sglang.srt.managers.io_struct import (
            ContinueGenerationReqInput,
            PauseGenerationReqInput,
        )

        if self._rounds:
            self._rounds -= 1
            return [] if self._rounds else [ContinueGenerationReqInput()]
        if self._pauses and self._pauses[0]["at"] <= now:
            pause = self._pauses.pop(0)
            self._rounds = pause["rounds"]
            return [PauseGenerationReqInput(mode=pause["mode"])]
        return []

    def idle(self, is_fully_idle: bool) -> list[Any]:
        """Note that nobody runs or waits."""
        from sglang.srt.managers.io_struct import ShutdownReq

        self._is_idle = is_fully_idle
        if not is_fully_idle or self._requests:
            return []
        return [*self._closed(FOREVER), ShutdownReq()]


def scheduler_of(folder: Path, settings: dict[str, Any], witness_at: Path) -> tuple[Any, Any, Any]:
    """Make a scheduler as its process does, and listen where its tokenizer would."""
    from sglang.srt.managers import scheduler as module
    from sglang.srt.plugins import load_plugins
    from sglang.srt.server_args import PortArgs, ServerArgs

    load_plugins()
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(CONFIG))
    args = ServerArgs(
        model_path=str(folder / "model"), device="cpu", attention_backend="torch_native",
        sampling_backend="pytorch", load_format="dummy", skip_tokenizer_init=True,
        dtype="float32", mem_fraction_static=0.5, disable_cuda_graph=True,
        **(DEFAULTS | adapters.settings_for(settings)),
    )  # fmt: skip
    if "speculative_algorithm" in settings:
        drafts.stand_in()
    module.publish(
        args, role="scheduler", ranks=module.SpawnRanks(world_rank=0, dp_rank=None, gpu_id=0)
    )
    ports = PortArgs.init_new(args)
    witness = Witness(module.Scheduler, witness_at)
    scheduler = module.Scheduler(args, ports)
    adapters.load(scheduler, CONFIG, settings.get("adapters", 0))
    return scheduler, witness, ports


def drain(address: str) -> None:
    """Take what the scheduler sends, as its tokenizer does: else its socket would fill up."""
    import zmq

    socket: Any = zmq.Context.instance().socket(zmq.PULL)
    socket.bind(address)

    def take() -> None:
        while True:
            socket.recv_multipart()

    threading.Thread(target=take, daemon=True).start()


def _made(row: dict[str, Any]) -> Any:
    from sglang.srt.managers.io_struct import SessionParams, TokenizedGenerateReqInput
    from sglang.srt.sampling.sampling_params import SamplingParams

    sampling = SamplingParams(
        max_new_tokens=row["max_tokens"], temperature=0, ignore_eos=row.get("ignore_eos", False),
        regex=row.get("regex"),
    )  # fmt: skip
    sampling.normalize(None)
    name, session = row.get("lora"), row.get("session")
    return TokenizedGenerateReqInput(
        rid=row["id"], input_text=None, input_ids=array("q", row["prompt"]), input_embeds=None,
        mm_inputs=None, token_type_ids=None, sampling_params=sampling,
        return_logprob=row.get("return_logprob", False),
        logprob_start_len=-1, top_logprobs_num=0, token_ids_logprob=None, stream=False,
        priority=row.get("priority"), lora_id=adapters.id_of(name), lora_name=name,
        session_params=SessionParams(**session) if session else None,
    )  # fmt: skip


def _abort(row: dict[str, Any]) -> Any:
    from sglang.srt.managers.io_struct import AbortReq

    return AbortReq(rid=row["id"], abort_all=not row["id"])


def run(folder: Path, situation: dict[str, Any]) -> None:
    """Run a situation, until everybody has been served."""
    from sglang.srt.managers.scheduler_components.request_receiver import SchedulerRequestReceiver

    scheduler, witness, ports = scheduler_of(folder, situation["settings"], folder / "truth.jsonl")
    if any("regex" in each for each in situation["requests"]):
        scheduler.grammar_manager.grammar_backend = late_backend(
            situation["requests"], NUM_TOKENS, lambda: witness.num_formed
        )
    drain(ports.tokenizer_ipc_name)
    feed = Feed(situation, witness)
    idle = scheduler.on_idle

    def on_idle() -> None:
        idle()
        scheduler.process_input_requests(feed.idle(scheduler.is_fully_idle()))

    scheduler.on_idle = on_idle
    SchedulerRequestReceiver.recv_requests = feed.due
    scheduler.run_event_loop()
    scheduler.release_host_resources()
    witness.close()


def start(folder: Path, situation: dict[str, Any]) -> int:
    """Run a situation in a process forked from this one, which has SGLang imported; its pid."""
    folder.mkdir()
    if pid := os.fork():
        return pid
    os.environ["STEPSCOPE_TRACE"] = str(folder / "traces")
    log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        run(folder, situation)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        logging.shutdown()
        os._exit(code)


def main() -> None:
    """Run the situations that were named, or all; exits 1 where one has failed."""
    import sglang.srt.managers.scheduler  # noqa: F401 - once, for all that are forked

    folder, names = Path(sys.argv[1]), sys.argv[2:]
    codes = [
        os.waitpid(start(folder / str(number), situation), 0)[1]
        for number, situation in enumerate(SITUATIONS)
        if not names or situation["name"] in names
    ]
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
