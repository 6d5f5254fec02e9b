"""One look at a time, whoever asks."""

from __future__ import annotations

import asyncio

from tool_server.look import Look


def test_whoever_asks_while_a_look_is_under_way_gets_what_it_finds() -> None:
    looks = 0

    async def find() -> int:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return looks

    async def ask() -> list[int | None]:
        look = Look(find, 10.0)
        return await asyncio.gather(*(look.found() for _ in range(100)))

    assert asyncio.run(ask()) == [1] * 100
    assert looks == 1


def test_who_asks_at_the_moment_in_which_a_look_ends_takes_nobodys_answer_away() -> None:
    async def ask() -> list[int | None]:
        end = asyncio.Event()

        async def find() -> int:
            await end.wait()
            await asyncio.sleep(0)
            return 1

        look = Look(find, 10.0)
        asking = [asyncio.create_task(look.found())]
        await asyncio.sleep(0)
        end.set()
        for _ in range(10):  # one comes in at every step of the loop
            asking.append(asyncio.create_task(look.found()))
            await asyncio.sleep(0)
        return await asyncio.gather(*asking)

    assert asyncio.run(ask()) == [1] * 11


def test_a_look_that_takes_too_long_is_joined_and_not_cut_off() -> None:
    looks = 0

    async def ask() -> tuple[int | None, int | None]:
        end = asyncio.Event()

        async def find() -> int:
            nonlocal looks
            looks += 1
            await end.wait()
            return looks

        look = Look(find, 0.05)
        late = await look.found()
        asking = asyncio.create_task(look.found())
        await asyncio.sleep(0)
        end.set()
        return late, await asking

    assert asyncio.run(ask()) == (None, 1)
    assert looks == 1
