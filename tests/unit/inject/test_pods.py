"""Pods before and after."""

from __future__ import annotations

import copy

import kubernetes_validate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.cli.run import run
from amqpgate.inject import Injection, Injector, NotInjectedError, inject
from amqpgate.yamldoc.schema import Json

from .pods import SECRET, URL, container, env, pod

NATIVE = Injector(image="amqpgate:test")
CLASSIC = Injector(image="amqpgate:test", sidecar="classic")


def injected(before: dict[str, Json], settings: Injector = NATIVE) -> dict[str, Json]:
    """The pod after injection, which is a valid one and has left the argument alone."""
    original = copy.deepcopy(before)
    injection = inject(before, settings)
    assert isinstance(injection, Injection)
    assert before == original
    version = "1.31" if settings.sidecar == "native" else "1.28"
    kubernetes_validate.validate(injection.pod, version, strict=True)
    return injection.pod


def refusal(before: dict[str, Json], settings: Injector = NATIVE) -> str:
    with pytest.raises(NotInjectedError) as caught:
        inject(before, settings)
    return str(caught.value)


def sidecar(after: dict[str, Json]) -> dict[str, Json]:
    spec = after["spec"]
    (found,) = [
        one
        for key in ("initContainers", "containers")
        for one in spec.get(key, [])
        if one["name"] == "amqpgate"
    ]
    return found


def env_of(after: dict[str, Json], index: int = 0, key: str = "containers") -> list[Json]:
    return after["spec"][key][index]["env"]


class TestWhereTheUrlLeads:
    def test_a_plain_url_keeps_its_login_virtual_host_and_options(self) -> None:
        after = injected(pod(container(env("A", "1"), env("AMQP_URL", URL))))
        assert env_of(after) == [
            env("A", "1"),
            env("AMQP_URL", "amqp://orders:s3cret@127.0.0.1:5672/shop?heartbeat=10"),
        ]
        # The login is the client's own: the sidecar has none.
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", "amqp://rabbit.mq:5672")]

    def test_tls_is_spoken_by_the_sidecar(self) -> None:
        after = injected(pod(container(env("AMQP_URL", "amqps://a:b@rabbit/x"))))
        assert env_of(after) == [env("AMQP_URL", "amqp://a:b@127.0.0.1:5672/x")]
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", "amqps://rabbit:5671")]

    def test_celerys_scheme_stays(self) -> None:
        after = injected(pod(container(env("CELERY_BROKER_URL", "pyamqp://a:b@rabbit//"))))
        assert env_of(after) == [env("CELERY_BROKER_URL", "pyamqp://a:b@127.0.0.1:5672//")]

    def test_a_secret_goes_to_the_sidecar_and_no_further(self) -> None:
        after = injected(pod(container(env("AMQP_URL", SECRET))))
        assert env_of(after) == [env("AMQP_URL", "amqp://127.0.0.1:5672")]
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", SECRET)]

    def test_references_in_the_login_stay(self) -> None:
        entries = env("USER", SECRET), env("AMQP_URL", "amqp://$(USER):$(PASS)@rabbit/x")
        after = injected(pod(container(*entries)))
        assert env_of(after)[1] == env("AMQP_URL", "amqp://$(USER):$(PASS)@127.0.0.1:5672/x")
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", "amqp://rabbit:5672")]

    def test_references_in_the_host_go_to_the_sidecar_with_what_they_refer_to(self) -> None:
        entries = [
            env("ZONE", {"configMapKeyRef": {"name": "zones", "key": "here"}}),
            env("OTHER", "x"),
            env("HOST", "rabbit.$(ZONE)"),
            env("AMQP_URL", "amqp://a:b@$(HOST):5672/x"),
        ]
        after = injected(pod(container(*entries)))
        assert sidecar(after)["env"] == [
            entries[0],
            entries[2],
            env("AMQPGATE_UPSTREAM", "amqp://$(HOST):5672"),
        ]
        assert env_of(after)[3] == env("AMQP_URL", "amqp://a:b@127.0.0.1:5672/x")

    def test_a_reference_that_nothing_defines(self) -> None:
        # What stands behind a variable is not put into it.
        why = refusal(pod(container(env("AMQP_URL", "amqp://$(HOST)/x"), env("HOST", "rabbit"))))
        assert "$(HOST)" in why
        assert "amqpgate.io/upstream" in why

    @pytest.mark.parametrize(
        ("url", "word"),
        [
            ("amqp://a:b@one,two/x", "several brokers"),
            ("amqp://one;amqp://two", "several brokers"),
            ("amqp://one/x;amqp://two", "several URLs"),
            ("amqps://a/x?cacertfile=/ca.pem", "options for TLS"),
            ("amqp://", "no host"),
            ("amqp://a:99999", "port"),
        ],
    )
    def test_urls_that_cannot_be_led_elsewhere(self, url: str, word: str) -> None:
        why = refusal(pod(container(env("AMQP_URL", url))))
        assert why.startswith("AMQP_URL of container app: ")
        assert word in why

    @pytest.mark.parametrize("where", ["upstream", "upstream-secret", "config"])
    @pytest.mark.parametrize("url", ["amqp://a:b@one/x;amqp://two/x", "amqps://a/x?ssl_options=y"])
    def test_nor_can_they_when_the_pod_says_where_the_broker_is(self, url: str, where: str) -> None:
        said: Json = {"upstream": "amqp://three", "upstream-secret": "a/b", "config": "c"}[where]
        why = refusal(pod(container(env("AMQP_URL", url)), annotations={where: said}))
        assert why.startswith("AMQP_URL of container app: ")

    def test_several_brokers_in_the_sidecars_settings(self) -> None:
        after = injected(pod(container(env("AMQP_URL", "amqp://a:b@one,two/x")), annotations={"config": "c"}))
        assert env_of(after) == [env("AMQP_URL", "amqp://a:b@127.0.0.1:5672/x")]
        assert sidecar(after)["env"] == []

    def test_no_error_shows_a_password(self) -> None:
        assert "s3cret" not in refusal(pod(container(env("AMQP_URL", "amqp://a:s3cret@one,two/x"))))
        assert "s3cret" not in refusal(pod(container(env("AMQP_URL", "amqp://a:s3cret@x:y:z/x"))))


class TestWhichPods:
    @pytest.mark.parametrize(
        "before",
        [
            pod(container()),
            pod(container(env("DATABASE_URL", "postgres://db"))),
            pod(container(env("BROKER_URL", "redis://cache"))),
            pod(container(env("AMQP_URL", "amqp://localhost"))),
            pod(container(env("AMQP_URL", "amqp://[::1]:5672"))),
            pod(container(env("AMQP_URL", URL)), annotations={"inject": "disabled"}),
            pod(container(name="amqpgate")),
            pod(container(), initContainers=[container(name="amqpgate")]),
            pod(container(env("OTHER", URL))),
        ],
    )
    def test_those_that_are_left_as_they_are(self, before: dict[str, Json]) -> None:
        assert inject(before, NATIVE) is None

    def test_variables_can_be_named_by_the_pod(self) -> None:
        before = pod(
            container(env("AMQP_URL", "amqp://other"), env("QUEUE", URL)), annotations={"env": "QUEUE, MORE"}
        )
        after = injected(before)
        assert env_of(after)[0] == env("AMQP_URL", "amqp://other")
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", "amqp://rabbit.mq:5672")]

    def test_variables_can_be_named_by_the_settings(self) -> None:
        settings = Injector(variables=("QUEUE",))
        assert inject(pod(container(env("AMQP_URL", URL))), settings) is None
        assert inject(pod(container(env("QUEUE", URL))), settings) is not None

    def test_two_variables_of_one_broker(self) -> None:
        before = pod(
            container(env("AMQP_URL", "amqp://a:b@rabbit/x")),
            container(env("RABBITMQ_URL", "amqp://c:d@rabbit:5672/y"), name="b"),
        )
        injection = inject(before, NATIVE)
        assert injection is not None
        assert injection.variables == ("AMQP_URL of container app", "RABBITMQ_URL of container b")
        assert env_of(injection.pod, 1) == [env("RABBITMQ_URL", "amqp://c:d@127.0.0.1:5672/y")]

    def test_two_brokers(self) -> None:
        before = pod(container(env("AMQP_URL", "amqp://one"), env("RABBITMQ_URL", "amqp://two")))
        assert "AMQP_URL of container app and RABBITMQ_URL of container app name two brokers" in refusal(
            before
        )
        before["metadata"]["annotations"] = {"amqpgate.io/upstream": "amqp://three"}
        after = injected(before)
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", "amqp://three")]
        assert env_of(after) == [env(name, "amqp://127.0.0.1:5672") for name in ("AMQP_URL", "RABBITMQ_URL")]

    def test_a_variable_that_may_be_of_another_protocol(self) -> None:
        before = pod(container(env("BROKER_URL", SECRET)))
        assert "may be of another protocol" in refusal(before)
        before["metadata"]["annotations"] = {"amqpgate.io/env": "BROKER_URL"}
        assert sidecar(injected(before))["env"] == [env("AMQPGATE_UPSTREAM", SECRET)]

    def test_a_variable_from_the_pod_itself(self) -> None:
        source: Json = {"fieldRef": {"fieldPath": "metadata.name"}}
        assert "neither from a Secret" in refusal(pod(container(env("AMQP_URL", source))))

    def test_a_variable_that_comes_whole_from_a_secret(self) -> None:
        before = pod(
            container(envFrom=[{"secretRef": {"name": "rabbit"}}]),
            container(name="other"),
            annotations={"env": "AMQP_URL", "upstream-secret": "rabbit/AMQP_URL"},
        )
        after = injected(before)
        assert env_of(after) == [env("AMQP_URL", "amqp://127.0.0.1:5672")]
        assert env_of(after, 1) == []
        source: Json = {"secretKeyRef": {"name": "rabbit", "key": "AMQP_URL"}}
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", source)]
        del before["metadata"]["annotations"]["amqpgate.io/upstream-secret"]
        assert "envFrom" in refusal(before)

    def test_a_pod_that_insists(self) -> None:
        assert "no container has an AMQP URL" in refusal(pod(container(), annotations={"inject": "enabled"}))
        assert "no container has QUEUE" in refusal(pod(container(), annotations={"env": "QUEUE"}))
        assert "no container has an AMQP URL" in refusal(
            pod(container(), annotations={"upstream": "amqp://a"})
        )
        after = injected(pod(container(), annotations={"inject": "enabled", "upstream": "amqp://a"}))
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", "amqp://a")]

    def test_the_host_network(self) -> None:
        assert "hostNetwork" in refusal(pod(container(env("AMQP_URL", URL)), hostNetwork=True))

    def test_a_port_that_is_taken(self) -> None:
        before = pod(container(env("AMQP_URL", URL), ports=[{"containerPort": 5672}]))
        assert "container app has port 5672, which" in refusal(before)
        before["metadata"]["annotations"] = {"amqpgate.io/port": "5673"}
        after = injected(before)
        assert "@127.0.0.1:5673/" in env_of(after)[0]["value"]
        assert "127.0.0.1:5673" in sidecar(after)["args"]
        before["spec"]["containers"][0]["ports"] = [{"containerPort": 15681}]
        assert "container app has port 15681" in refusal(before)

    def test_a_job_needs_a_native_sidecar(self) -> None:
        before = pod(container(env("AMQP_URL", URL)), restartPolicy="Never")
        assert "keep this pod from ending" in refusal(before, CLASSIC)
        assert sidecar(injected(before))["restartPolicy"] == "Always"

    @pytest.mark.parametrize(
        ("annotations", "word"),
        [
            ({"polices": "x"}, "did you mean 'amqpgate.io/policies'?"),
            ({"inject": "maybe"}, "enabled or disabled"),
            ({"env": "A B"}, "list of variables"),
            ({"upstream": "http://a"}, "expected amqp://"),
            ({"upstream": "amqp://a:s3cret@b"}, "upstream-secret"),
            ({"upstream-secret": "rabbit"}, "NAME/KEY"),
            ({"upstream": "amqp://a", "upstream-secret": "a/b"}, "exclude each other"),
            ({"policies": "No Name"}, "name of a ConfigMap"),
            ({"port": "70000"}, "port from 1 to 65535"),
            ({"port": "15680"}, "choose another"),
            ({"port": 5}, "is not text"),
        ],
    )
    def test_annotations_that_cannot_be_understood(self, annotations: dict[str, Json], word: str) -> None:
        why = refusal(pod(container(env("AMQP_URL", URL)), annotations=annotations))
        assert word in why
        assert "s3cret" not in why

    def test_a_secret_and_an_upstream_without_its_login(self) -> None:
        before = pod(container(env("AMQP_URL", SECRET)), annotations={"upstream": "amqp://a"})
        assert "its login would be lost" in refusal(before)

    @pytest.mark.parametrize(
        ("spec", "where"),
        [
            ({"containers": "x"}, "spec.containers is not a list"),
            ({"containers": ["x"]}, "spec.containers[0] is not a mapping"),
            ({"containers": [{"name": "a", "env": {}}]}, "container a.env is not a list"),
            ({"containers": [{"name": 5}]}, "container.name is not text"),
            (
                {"containers": [{"name": "a", "env": [{"name": "AMQP_URL", "value": 5}]}]},
                "AMQP_URL.value is not text",
            ),
        ],
    )
    def test_what_is_no_pod(self, spec: dict[str, Json], where: str) -> None:
        assert refusal({"metadata": {}, "spec": spec}) == where


class TestTheSidecar:
    def test_a_native_one_starts_first_and_serves_init_containers_too(self) -> None:
        migrate = container(env("AMQP_URL", URL), name="migrate")
        after = injected(pod(container(env("AMQP_URL", URL)), initContainers=[migrate]))
        assert [one["name"] for one in after["spec"]["initContainers"]] == ["amqpgate", "migrate"]
        assert "127.0.0.1" in env_of(after, 1, "initContainers")[0]["value"]
        assert sidecar(after)["restartPolicy"] == "Always"
        # It would run while the application still works.
        assert "lifecycle" not in sidecar(after)

    def test_a_classic_one_comes_after_init_containers_which_go_directly(self) -> None:
        migrate = container(env("AMQP_URL", URL), name="migrate")
        after = injected(pod(container(env("AMQP_URL", URL)), initContainers=[migrate]), CLASSIC)
        assert [one["name"] for one in after["spec"]["containers"]] == ["app", "amqpgate"]
        assert after["spec"]["initContainers"] == [migrate]
        assert "restartPolicy" not in sidecar(after)
        # All are told to stop at once: it goes on for as long as the application may need.
        assert "sleep" in sidecar(after)["lifecycle"]["preStop"]["exec"]["command"][-1]

    def test_it_may_do_nothing_but_relay(self) -> None:
        security = sidecar(injected(pod(container(env("AMQP_URL", URL)))))["securityContext"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"] is True
        assert security["runAsNonRoot"] is True
        assert security["allowPrivilegeEscalation"] is False

    def test_policies_and_settings_come_from_config_maps(self) -> None:
        annotations: dict[str, Json] = {"policies": "shop-policies"}
        after = injected(
            pod(container(env("AMQP_URL", URL)), annotations=annotations, volumes=[{"name": "x"}])
        )
        args = sidecar(after)["args"]
        (mount,) = sidecar(after)["volumeMounts"]
        assert args[args.index("--policies") + 1] == mount["mountPath"]
        assert after["spec"]["volumes"] == [
            {"name": "x"},
            {"name": mount["name"], "configMap": {"name": "shop-policies"}},
        ]
        annotations["config"] = "shop-settings"
        after = injected(pod(container(env("AMQP_URL", URL)), annotations=annotations))
        assert sidecar(after)["args"] == ["run", "--config", "/etc/amqpgate/config/amqpgate.yaml"]
        assert [one["configMap"]["name"] for one in after["spec"]["volumes"]] == [
            "shop-settings",
            "shop-policies",
        ]
        # The settings may refer to it.
        assert sidecar(after)["env"] == [env("AMQPGATE_UPSTREAM", "amqp://rabbit.mq:5672")]

    def test_policies_for_pods_that_name_none(self) -> None:
        settings = Injector(policies="usual")
        named = pod(container(env("AMQP_URL", URL)), annotations={"policies": "own"})
        assert injected(named, settings)["spec"]["volumes"][0]["configMap"] == {"name": "own"}
        assert injected(pod(container(env("AMQP_URL", URL))), settings)["spec"]["volumes"][0][
            "configMap"
        ] == {"name": "usual"}

    def test_run_knows_its_arguments(self) -> None:
        after = injected(pod(container(env("AMQP_URL", URL)), annotations={"policies": "a"}))
        known = {name for parameter in run.params for name in parameter.opts}
        verb, *words = sidecar(after)["args"]
        assert verb == "run"
        assert {word for word in words if word.startswith("-")} <= known
        assert sidecar(after)["env"][0]["name"] in {parameter.envvar for parameter in run.params}


NAMES = st.sampled_from(["AMQP_URL", "RABBITMQ_URL", "BROKER_URL", "OTHER", "HOST"])
VALUES: st.SearchStrategy[Json] = st.sampled_from(
    [URL, "amqps://rabbit.mq:5672", "amqp://$(HOST)", "redis://x", "amqp://localhost", "x", SECRET]
)
ENTRIES = st.lists(st.builds(env, NAMES, VALUES), max_size=4)
CONTAINERS = ENTRIES.map(lambda entries: container(*entries))
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "inject": st.sampled_from(["enabled", "disabled"]),
        "env": st.sampled_from(["AMQP_URL", "BROKER_URL,OTHER"]),
        "upstream": st.just("amqp://elsewhere"),
        "upstream-secret": st.just("rabbit/url"),
        "policies": st.just("shop"),
        "config": st.just("settings"),
        "port": st.just("5673"),
    },
)


@given(
    st.lists(CONTAINERS, min_size=1, max_size=3),
    st.lists(CONTAINERS, max_size=2),
    ANNOTATIONS,
    st.sampled_from([NATIVE, CLASSIC, Injector(policies="usual")]),
)
def test_a_second_pass_changes_nothing_and_the_first_all(
    containers: list[dict[str, Json]],
    init: list[dict[str, Json]],
    annotations: dict[str, Json],
    settings: Injector,
) -> None:
    before = pod(*containers, annotations=annotations, initContainers=list[Json](init))
    try:
        injection = inject(before, settings)
    except NotInjectedError:
        return
    if injection is None:
        return
    assert inject(injection.pod, settings) is None
    # What was not led elsewhere is as it was: only so many entries differ, each has a sidecar's address.
    assert len(injection.pod["spec"]["containers"]) == len(containers) + (settings.sidecar == "classic")
    for line in injection.variables:
        name, _, _ = line.partition(" ")
        assert any(
            entry["name"] == name and "127.0.0.1" in entry.get("value", "")
            for one in [*injection.pod["spec"]["containers"], *injection.pod["spec"]["initContainers"]]
            for entry in one["env"]
        )


def test_a_container_of_that_name_that_nobody_injected_is_no_sidecar() -> None:
    """Whoever calls a container of his own amqpgate is not let in without one."""
    before = pod(container(env("AMQP_URL", URL)), container(name="amqpgate"))
    assert "container named amqpgate" in refusal(before)
    as_init = pod(container(env("AMQP_URL", URL)), initContainers=[container(name="amqpgate")])
    assert "amqpgate.io/inject: disabled" in refusal(as_init)
    disabled = pod(
        container(env("AMQP_URL", URL)), container(name="amqpgate"), annotations={"inject": "disabled"}
    )
    assert inject(disabled, NATIVE) is None
    assert inject(injected(pod(container(env("AMQP_URL", URL)))), NATIVE) is None
