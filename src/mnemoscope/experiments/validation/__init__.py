"""Theory held against simulation."""
