<#
.SYNOPSIS
Prints what windows_exporter will see with the RoCE configuration: object, instance and counter.

.DESCRIPTION
Reads the configuration windows_exporter.yml and the performance counters of this machine, and changes nothing.
For each counter of the configuration: whether this machine has it, and its instances.
Then the counters of WinOF-2 and of RDMA Activity that the configuration does not have.
Please send its output with questions about Windows hosts. Names of adapters are in it, addresses are not.

.PARAMETER Configuration
The configuration of windows_exporter; by default the file next to this script.

.EXAMPLE
powershell -ExecutionPolicy Bypass -File Show-RoceCounters.ps1 > counters.txt
#>
param(
    [string]$Configuration = (Join-Path $PSScriptRoot 'windows_exporter.yml')
)

$wanted = @()
$object = ''
foreach ($line in (Get-Content -Path $Configuration)) {
    if ($line -match '^\s+object: "(.+)"') { $object = $Matches[1] }
    elseif ($line -match '^\s+- name: "(.+)"') {
        $wanted += [pscustomobject]@{ Object = $object; Counter = $Matches[1] }
    }
}

$known = @{}
$instances = @{}
foreach ($set in (Get-Counter -ListSet 'Mellanox*', 'NVIDIA*', 'RDMA Activity' -ErrorAction SilentlyContinue)) {
    # \Object(*)\Counter
    $known[$set.CounterSetName] = @($set.Paths | ForEach-Object { $_ -replace '^.*\\', '' })
    # \Object(instance)\Counter; an instance may contain parentheses
    $instances[$set.CounterSetName] = @(
        $set.PathsWithInstances |
            ForEach-Object { if ($_ -match '^\\[^(]+\((.*)\)\\[^\\]+$') { $Matches[1] } } |
            Sort-Object -Unique
    )
}

'== objects and instances of this machine'
foreach ($name in ($known.Keys | Sort-Object)) {
    "object: $name"
    foreach ($instance in $instances[$name]) { "  instance: $instance" }
}

''
'== counters of the configuration'
foreach ($one in $wanted) {
    $state = 'missing object'
    if ($known.ContainsKey($one.Object)) {
        $state = 'missing counter'
        if ($known[$one.Object] -contains $one.Counter) { $state = 'found' }
    }
    '{0,-15} {1} \ {2}' -f $state, $one.Object, $one.Counter
}

''
'== counters that the configuration does not have'
foreach ($name in ($known.Keys | Sort-Object)) {
    $configured = @($wanted | Where-Object { $_.Object -eq $name } | ForEach-Object { $_.Counter })
    foreach ($counter in $known[$name]) {
        if ($configured -notcontains $counter) { "$name \ $counter" }
    }
}
