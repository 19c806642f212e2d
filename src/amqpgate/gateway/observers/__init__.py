"""observers"""
