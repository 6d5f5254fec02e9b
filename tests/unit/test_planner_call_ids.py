"""Vendors' ids repeat or are missing; ours are unique in a workflow and lead back to the vendor's."""

from __future__ import annotations

import pytest

from host.domain.proposals import ToolCall
from host.planner.decode import encode_output, vendor_call_id
from tests.unit.vendor_turns import GET_ORDER, VENDORS, decided, every_vendor, outcome, responses, said


@every_vendor
def test_ids_that_repeat_per_turn_become_unique_and_map_back(vendor):
    calls = [decided(vendor, vendor.build(calls=(GET_ORDER,)), turn) for turn in (1, 2, 3)]
    ids = [call.call_id for call in calls if isinstance(call, ToolCall)]
    assert len(set(ids)) == 3
    assert [vendor_call_id(call_id) for call_id in ids] == ["call_0"] * 3


@every_vendor
@pytest.mark.parametrize(
    "call_id", ["call_42", "t1:call_0", "t7", "0197f0a4-9c1e-7c11-8a55-0d6d2d4f4a11", "呼出 1", "x" * 200]
)
def test_any_printable_vendor_id_stays_apart_from_the_hosts_and_maps_back(vendor, call_id):
    call = decided(vendor, vendor.build(calls=(said("get_order", call_id=call_id),)), 12)
    assert isinstance(call, ToolCall)
    assert call.call_id == f"t12:{call_id}"
    assert vendor_call_id(call.call_id) == call_id


@every_vendor
@pytest.mark.parametrize("call_id", ["", None])
def test_a_call_without_an_id_gets_the_hosts(vendor, call_id):
    call = decided(vendor, vendor.build(calls=(said("get_order", call_id=call_id),)), 12)
    assert isinstance(call, ToolCall)
    assert call.call_id == vendor_call_id(call.call_id) == "t12"


@every_vendor
@pytest.mark.parametrize("call_id", ["x" * 300, "a\0b", "a\nb", "\ud800", "a\u200bb"], ids=ascii)
def test_an_id_that_is_overlong_or_not_printable_is_refused(vendor, call_id):
    assert outcome(vendor, vendor.build(calls=(said("get_order", call_id=call_id),))) == "call_id_invalid"


def test_a_result_goes_back_under_the_id_of_its_call():
    call_event = {
        "type": "function_call",
        "call_id": "call_42",
        "name": "create_return",
        "arguments": '{"order_id":"A-1001"}',
    }
    call = decided(VENDORS["responses"], {**responses(), "output": [call_event]})
    assert isinstance(call, ToolCall)
    assert encode_output(call.call_id, {"status": "created", "reason": "返品"}) == {
        "type": "function_call_output",
        "call_id": "call_42",
        "output": '{"status":"created","reason":"返品"}',
    }
