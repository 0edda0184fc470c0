"""What several processes say of themselves, put together."""

from __future__ import annotations

from page.made_up_status import bus, session, status
from tardis_fast.server.siblings import merged_status


def test_figures_are_summed_and_the_last_error_is_the_newest() -> None:
    quiet = bus("lake", accepted=5, acknowledged=5)
    older = bus("lake", accepted=7, connected=False, last_error="older", last_error_us=1)
    newer = bus("lake", accepted=1, last_error="newer", last_error_us=2, last_error_at="then")
    merged = merged_status(
        [
            status(1, sessions=[session("a")], buses=[quiet], events=[]),
            status(1, sessions=[], buses=[older], events=[]),
            status(1, sessions=[session("b")], buses=[newer], events=[]),
        ]
    )
    assert merged["processes"] == 3
    assert [one["id"] for one in merged["sessions"]] == ["a", "b"]
    (lake,) = merged["buses"]
    assert (lake["accepted"], lake["acknowledged"], lake["connected"]) == (13, 5, False)
    assert (lake["last_error"], lake["last_error_us"], lake["last_error_at"]) == (
        "newer",
        2,
        "then",
    )
