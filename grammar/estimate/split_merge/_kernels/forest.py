"""Compiled part of the order of a forest's nodes; plain arrays in and out."""

from truesource.grammar._kernels.kernel import kernel


@kernel
def release(order, fresh, done, rule, first_parent, parents, waiting, place, ready, end):
    """Take the nodes at ``fresh`` to ``done`` of the order as done: parents with no child left to do become ready.

    The parents of node i are ``parents[first_parent[i]]`` to ``parents[first_parent[i + 1]]``; ``waiting`` (N,) are
    the children left to do; ``place`` (N,) receives the position of each node; ready nodes of base rule r are put at
    ``end[r]`` in ``ready``.
    """
    for at in range(fresh, done):
        node = order[at]
        place[node] = at
        for k in range(first_parent[node], first_parent[node + 1]):
            parent = parents[k]
            waiting[parent] -= 1
            if waiting[parent] == 0:
                ready[end[rule[parent]]] = parent
                end[rule[parent]] += 1
